// The program: selects the sub-command and converts its exceptions to a message and an exit code (0 success, 1 failure,
// 2 usage).
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>
#include <string>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/end_of_log.h"
#include "etc_core/base/error.h"
#include "etc_core/base/error_text.h"
#include "etc_core/base/log.h"
#include "etc_core/base/version.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/processes.h"
#include "tasks/output.h"

namespace {

// If the caller closed descriptor 0, 1 or 2, the next file to be opened would get it, and messages would be written
// into that file. So closed ones are opened with the wrong access mode, which makes using them an error.
void reserve_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0) {
      [[maybe_unused]] const int taken = ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
    }
  }
}

// Weights are memory-mapped (etc_core/checkpoint/input_file.h). If another program has truncated the file since,
// accessing a lost page raises this signal.
void end_at_lost_page(int) {
  constexpr char kText[] =
      "etc: a file that is in use was shortened by another program (replace files of a model by mv, not by writing "
      "into "
      "them)\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(1);
}

void tell_of_lost_pages() {
  struct sigaction action = {};
  action.sa_handler = end_at_lost_page;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGBUS, &action, nullptr);
}

int run(int argc, char** argv) {
  const char* description = "etc: prepares, trains, evaluates and predicts with ETC encoders on long documents";
  etc::cli::Program program("etc", description, std::string("etc ") + etc::program_version());
  etc::cli::add_sample_command(program);
  etc::cli::add_prepare_command(program);
  etc::cli::add_train_command(program);
  etc::cli::add_eval_command(program);
  etc::cli::add_predict_command(program);
  etc::cli::add_translate_command(program);
  etc::cli::add_ask_command(program);
  etc::cli::add_keyphrases_command(program);
  etc::cli::add_serve_command(program);
  etc::cli::add_benchmark_command(program);
  etc::cli::add_encode_command(program);
  etc::cli::add_analyze_command(program);
  etc::cli::add_info_command(program);
  etc::cli::add_convert_command(program);
  etc::cli::add_completion_command(program);
  etc::cli::add_manual_command(program, description);
  return program.run(argc, argv);
}

// Runs the command; an exception becomes a message ("": none) and an exit code.
int guarded_run(int argc, char** argv, std::string& message) {
  try {
    etc::require_supported_cpu();
    etc::cli::join_others();
    etc::cli::add_backends();
    const int code = run(argc, argv);
    etc::flush_standard_output();
    return code;
  } catch (const etc::Interrupted&) {
    throw;  // thrown in all processes
  } catch (const etc::UsageError& error) {
    message = error.what();
    return 2;
  } catch (const std::bad_alloc&) {
    message = "etc: out of memory";
  } catch (const std::exception& error) {
    message = etc::error_text(error);
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_descriptors();
  // A reader that has gone, and a file beyond its size limit, are errors with a message instead of a silent end of the
  // process.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  tell_of_lost_pages();
  etc::log::to_stderr();
  std::string message;
  int code = 1;
  try {
    code = guarded_run(argc, argv, message);
    if (!message.empty()) etc::log::end_file(message, true);
    if (!message.empty() && etc::cli::processes().size() > 1) etc::cli::processes().end_all(message, code);
    if (!message.empty()) std::fprintf(stderr, "%s\n", message.c_str());
  } catch (const etc::Interrupted& stopped) {
    etc::log::end_file(stopped.what(), false);
    if (etc::cli::processes().first()) std::fprintf(stderr, "%s\n", stopped.what());
  }
  etc::cli::leave_others();
  return code;
}
