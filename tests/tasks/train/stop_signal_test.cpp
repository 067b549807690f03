// External events that end a run: signals, a closed terminal, a closed pipe of its messages.
#include "tasks/train/stop_signal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "etc_core/base/files.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/base/signals.h"
#include "etc_core/nn/backends.h"
#include "etc_core/ops/linear.h"
#include "tasks/train/run_state.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/small_run.h"

namespace {

namespace fs = std::filesystem;
using etc::test::Child;
using namespace std::chrono_literals;

// Restores SIGHUP and SIGPIPE after a test has changed them.
class SignalsRestored : etc::NotCopied {
 public:
  SignalsRestored() {
    ::sigaction(SIGHUP, nullptr, &hangup_);
    ::sigaction(SIGPIPE, nullptr, &pipe_);
  }
  ~SignalsRestored() {
    ::sigaction(SIGHUP, &hangup_, nullptr);
    ::sigaction(SIGPIPE, &pipe_, nullptr);
  }

 private:
  struct sigaction hangup_ {
  }, pipe_{};
};

bool ignored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

TEST_CASE("the first stop signal is only noted", "[tasks]") {
  const SignalsRestored restored;
  const etc::StopSignal signal;
  CHECK(!etc::StopSignal::requested());
  ::raise(SIGTERM);
  CHECK(etc::StopSignal::requested());
  CHECK(std::string(etc::StopSignal::name()) == "SIGTERM");
}

TEST_CASE("a terminal that closes may send SIGHUP twice, and its pipes may be dead by then", "[tasks]") {
  const SignalsRestored restored;
  ::signal(SIGHUP, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  const etc::StopSignal signal;
  CHECK(!ignored(SIGPIPE));
  ::raise(SIGHUP);
  ::raise(SIGHUP);
  CHECK(etc::StopSignal::requested());
  CHECK(std::string(etc::StopSignal::name()) == "SIGHUP");
  CHECK(ignored(SIGPIPE));
}

TEST_CASE("SIGHUP that is ignored, as under nohup, stays ignored", "[tasks]") {
  const SignalsRestored restored;
  ::signal(SIGHUP, SIG_IGN);
  const etc::StopSignal signal;
  ::raise(SIGHUP);
  CHECK(!etc::StopSignal::requested());
  CHECK(ignored(SIGHUP));
}

// Waits until the run in the folder has made a few steps; false when it ends earlier.
template <typename Running>
bool wait_for_steps(const fs::path& run, Running running) {
  while (running()) {
    std::error_code none;
    if (fs::file_size(run / "metrics.jsonl", none) > 1000 && !none) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// The step of checkpoint `last`; 0: there is none.
std::int64_t saved_step(const fs::path& run) {
  return fs::exists(run / "last") ? etc::read_run_progress(run / "last").step : 0;
}

// A run that saves only when it is stopped.
std::vector<std::string> unsaved_run(const fs::path& folder, const std::string& name) {
  etc::test::write_data(folder);
  return etc::test::training_command(folder, name, "1000000", "1000000");
}

TEST_CASE("a run whose terminal closes is saved", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  const std::vector<std::string> command = unsaved_run(folder.path(), "run");
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(master >= 0);
  REQUIRE(::grantpt(master) == 0);
  REQUIRE(::unlockpt(master) == 0);
  const std::string terminal = ::ptsname(master);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
    ::setsid();
    const int slave = ::open(terminal.c_str(), O_RDWR);
    if (slave < 0 || ::ioctl(slave, TIOCSCTTY, 0) != 0) ::_exit(126);
    for (const int descriptor : {0, 1, 2}) ::dup2(slave, descriptor);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  int status = 0;
  bool ended = false;
  CHECK(wait_for_steps(folder / "run", [&] {
    char unread[4096];  // a terminal with a full buffer would block the run
    ::fcntl(master, F_SETFL, O_NONBLOCK);
    while (::read(master, unread, sizeof unread) > 0) {
    }
    return !(ended = ::waitpid(child, &status, WNOHANG) == child);
  }));
  ::close(master);  // simulates closing the terminal window
  if (!ended) ::waitpid(child, &status, 0);
  CAPTURE(status);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(saved_step(folder / "run") > 0);
  const std::string log = etc::read_file(folder / "run" / "log.txt");
  CHECK(log.find("residual scores") != std::string::npos);
  CHECK(log.find("info: train: SIGHUP: stopped at step ") != std::string::npos);
}

TEST_CASE("a run under nohup goes on when its terminal closes", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  etc::test::write_data(folder.path());
  std::string line = "trap '' HUP; exec";
  for (const std::string& word : etc::test::training_command(folder.path(), "run", "60")) line += " '" + word + "'";
  Child child({"/bin/sh", "-c", line}, folder / "log");
  CHECK(wait_for_steps(folder / "run", [&] { return child.running(); }));
  child.send(SIGHUP);
  CHECK(child.wait() == 0);
  CHECK(saved_step(folder / "run") == 60);
}

TEST_CASE("a run goes on when nobody reads its messages any more", "[tasks]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const etc::test::TemporaryFolder folder;
  etc::test::write_data(folder.path());
  std::string line = "{";
  for (const std::string& word : etc::test::training_command(folder.path(), "run")) line += " '" + word + "'";
  line += " >'" + (folder / "out").string() + "'; echo $? >'" + (folder / "code").string() + "'; } 2>&1 | head -n 3";
  Child(std::vector<std::string>{"/bin/sh", "-c", line}, folder / "log").wait();
  CHECK(etc::read_file(folder / "code") == "0\n");
  CHECK(saved_step(folder / "run") == 24);
}

// oneDNN keeps the stack pointer register on the heap while it multiplies: a handler on the thread's own stack would
// write there.
TEST_CASE("thousands of signals during products change neither their numbers nor the heap", "[tasks]") {
  const SignalsRestored restored;
  ::signal(SIGHUP, SIG_DFL);
  etc::register_cpu_backend();
  constexpr std::int64_t kRows = 130, kIn = 300, kOut = 300;
  const std::vector<float> x(kRows * kIn, 0.5f), weight(kIn * kOut, 0.25f);
  const auto product = [&] {
    std::vector<float> y(kRows * kOut), dweight(kIn * kOut);
    etc::ops::LinearForward forward;
    forward.rows = kRows;
    forward.in = forward.x_stride = kIn;
    forward.out = forward.y_stride = kOut;
    forward.x = x.data();
    forward.weight = weight.data();
    forward.y = y.data();
    etc::ops::linear(etc::Device::cpu, forward);
    etc::ops::LinearBackward backward;
    backward.rows = kRows;
    backward.in = backward.x_stride = kIn;
    backward.out = backward.dz_stride = kOut;
    backward.dz = y.data();
    backward.x = x.data();
    backward.dweight = dweight.data();
    etc::ops::linear_backward(etc::Device::cpu, backward);
    return dweight;
  };
  const std::vector<float> expected = product();
  const etc::StopSignal stop_signal;
  std::atomic<bool> done = false;
  std::int64_t sent = 0;
  std::thread sender;
  {
    const etc::SignalsBlocked blocked;  // in the sending thread
    sender = std::thread([&, to = ::pthread_self()] {
      for (; !done; ++sent) {
        ::pthread_kill(to, SIGHUP);
        std::this_thread::sleep_for(50us);
      }
    });
  }
  bool equal = true;
  for (int i = 0; i < 300; ++i) equal = equal && product() == expected;
  done = true;
  sender.join();
  CHECK(equal);
  CHECK(sent > 100);
}

}  // namespace
