#include "tests/tasks/train/program.h"
#include "tests/support/folders.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"

namespace etc::test {

std::optional<std::string> program() {
  const char* path = std::getenv("ETC_PROGRAM");
  if (path == nullptr || !std::filesystem::exists(path)) return std::nullopt;
  return path;
}

Child::Child(const std::vector<std::string>& command, const std::filesystem::path& output) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const std::string out = output.string() + ".out", err = output.string() + ".err", in = output.string() + ".in";
  // Block signals until the program runs: after a fork, this process's handlers (Catch's) may wait forever for a lock
  // that no thread holds any more.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = ::fork();
  if (pid_ != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) fail("test", "cannot fork");
  if (pid_ > 0) return;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const int flags = O_CREAT | O_TRUNC | O_WRONLY;
  if (::dup2(::open(out.c_str(), flags, 0644), 1) < 0 || ::dup2(::open(err.c_str(), flags, 0644), 2) < 0) ::_exit(126);
  const int input = ::open(in.c_str(), O_RDONLY);
  ::dup2(input >= 0 ? input : ::open("/dev/null", O_RDONLY), 0);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

Child::~Child() {
  if (running()) {
    send(SIGKILL);
    wait();
  }
}

void Child::end(int options) {
  struct rusage usage {};
  if (::wait4(pid_, &status_, options, &usage) != pid_) return;  // still running
  constexpr std::int64_t kKilobyte = 1024;
  peak_bytes_ = usage.ru_maxrss * kKilobyte;
  pid_ = -1;
}

bool Child::running() {
  if (pid_ > 0) end(WNOHANG);
  return pid_ > 0;
}

void Child::send(int signal) {
  if (pid_ > 0) ::kill(pid_, signal);
}

bool Child::catches(int signal) const {
  // Until exec the child still has the handlers of this process.
  const std::string folder = "/proc/" + std::to_string(pid_);
  std::error_code gone;
  if (std::filesystem::read_symlink(folder + "/exe", gone) == std::filesystem::read_symlink("/proc/self/exe") || gone)
    return false;
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    const std::string_view name = "SigCgt:";
    if (line.starts_with(name)) return (std::stoull(line.substr(name.size()), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

int Child::wait() {
  if (pid_ > 0) end(0);
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

Result run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                   const std::string& standard_input) {
  const std::filesystem::path output = folder / "program";
  write_file(output.string() + ".in", standard_input);
  std::vector<std::string> command = {program().value()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Child child(command, output);
  const int code = child.wait();
  return {code, read_file(output.string() + ".out"), read_file(output.string() + ".err"), child.peak_bytes()};
}

double megabytes_told(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what + " ");
  INFO(text);
  REQUIRE(at != std::string::npos);
  std::istringstream words(text.substr(at + what.size()));
  double number = 0;
  std::string unit;
  words >> number >> unit;
  return unit.starts_with("GB") ? 1000 * number : unit.starts_with("KB") ? number / 1000 : number;
}

}  // namespace etc::test
