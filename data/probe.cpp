#include "data/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>

#include "etc_core/base/error.h"

namespace etc::data {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The first byte the child writes says how body() ended; the text of an exception follows.
constexpr char kFinished = 'k';
constexpr char kOwnError = 'e';      // an etc::Error: its text is already in the project's form
constexpr char kForeignError = 'x';  // any other exception
constexpr char kOutOfMemory = 'm';
constexpr int kExitCalled = 111;  // exit status of a child whose library called exit()

ProbeLimits effective_limits(ProbeLimits limits, const std::filesystem::path& file) {
  std::error_code ignored;
  const std::uintmax_t known = std::filesystem::file_size(file, ignored);
  const std::uint64_t size = ignored ? 0 : known;
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  if (limits.memory_bytes == 0) limits.memory_bytes = std::min(1024 * kMiB + 32 * size, 16 * 1024 * kMiB);
  if (limits.cpu_seconds == 0)
    limits.cpu_seconds = 20 + static_cast<int>(std::min<std::uint64_t>(size / (4 * kMiB), 3600));
  if (limits.wall_seconds == 0) limits.wall_seconds = 6 * limits.cpu_seconds;
  return limits;
}

void limit_resource(decltype(RLIMIT_AS) resource, std::uint64_t value) {
  struct rlimit limit {};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = std::min<rlim_t>(value, limit.rlim_max);
  ::setrlimit(resource, &limit);
}

std::uint64_t virtual_memory_bytes() {
  std::uint64_t pages = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%lu", &pages) != 1) pages = 0;
    std::fclose(statm);
  }
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void send(int pipe, char outcome, const char* text) {
  std::string message(1, outcome);
  message.append(text, ::strnlen(text, 4096));  // less than a pipe's capacity: the write cannot block
  [[maybe_unused]] const ssize_t written = ::write(pipe, message.data(), message.size());
}

// The child process. It ends with _exit, so that no static destructors run and the parent's stdio buffers are not
// flushed twice.
[[noreturn]] void child(int pipe, const std::function<void()>& body, const ProbeLimits& limits, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // the parent ended before PR_SET_PDEATHSIG took effect
  // Signals: a crash must kill the child (the parent's handlers would print or jump); the parent handles Ctrl-C.
  for (const int fatal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU}) ::signal(fatal, SIG_DFL);
  for (const int stop : {SIGINT, SIGTERM, SIGHUP}) ::signal(stop, SIG_IGN);
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) {
    ::dup2(null, STDOUT_FILENO);
    if (!kSanitized) ::dup2(null, STDERR_FILENO);  // a sanitizer's report must stay visible
  }
  // SentencePiece calls exit() on some damaged files: the handler registered last runs first and ends the child at
  // once.
  std::atexit([] { ::_exit(kExitCalled); });
  limit_resource(RLIMIT_CORE, 0);
  limit_resource(RLIMIT_CPU, static_cast<std::uint64_t>(limits.cpu_seconds));
  if (!kSanitized) limit_resource(RLIMIT_AS, virtual_memory_bytes() + limits.memory_bytes);
  try {
    body();
    send(pipe, kFinished, "");
  } catch (const Error& error) {
    send(pipe, kOwnError, error.what());
  } catch (const std::bad_alloc&) {
    send(pipe, kOutOfMemory, "");
  } catch (const std::exception& error) {
    send(pipe, kForeignError, error.what());
  } catch (...) {
    send(pipe, kForeignError, "unknown exception");
  }
  ::_exit(0);
}

// Whether the process itself is limited to less memory than the probe grants: then the failure is not the file's fault.
bool held_to_less(std::uint64_t memory_bytes) {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_max != RLIM_INFINITY &&
         limit.rlim_max < virtual_memory_bytes() + memory_bytes;
}

// Reads until the child closes its end. False: the deadline passed first.
bool receive(int pipe, int wall_seconds, std::string& message) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(wall_seconds);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    struct pollfd waiting {};
    waiting.fd = pipe;
    waiting.events = POLLIN;
    if (::poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 60'000))) <= 0) continue;
    char block[4096];
    const ssize_t got = ::read(pipe, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    message.append(block, static_cast<std::size_t>(got));
  }
}

// Waits for the child and returns its status, or 0 if the process ignores SIGCHLD, so that the kernel keeps no status.
int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 0;
  }
  return status;
}

}  // namespace

void run_probe(const std::string& what, const std::filesystem::path& file, const std::function<void()>& body,
               const ProbeLimits& requested) {
  // One at a time: a second child would inherit the first one's pipe and hold it open.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const ProbeLimits limits = effective_limits(requested, file);
  const std::string where = file.string();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(where, "cannot start the probe: {}", std::strerror(errno));
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    child(ends[1], body, limits, parent);
  }
  const int fork_error = errno;
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    fail(where, "cannot start the probe: {}", std::strerror(fork_error));
  }
  std::string message;
  const bool in_time = receive(ends[0], limits.wall_seconds, message);
  if (!in_time) ::kill(pid, SIGKILL);
  const int status = reap(pid);
  ::close(ends[0]);

  if (!message.empty()) {
    const std::string text = message.substr(1);
    switch (message[0]) {
      case kFinished:
        return;
      case kOwnError:
        throw Error(text);
      case kOutOfMemory:
        if (held_to_less(limits.memory_bytes)) {
          fail(where, "{}: opening it needs more memory than this process may take (ulimit -v)", what);
        }
        fail(where, "{}: opening it needs more than {} MiB of memory (the file is damaged)", what,
             limits.memory_bytes >> 20);
      default:
        fail(where, "{}: cannot be read: {}", what, text);
    }
  }
  if (!in_time || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) {
    fail(where, "{}: opening it takes more than {} s (the file is damaged and makes the library hang)", what,
         in_time ? limits.cpu_seconds : limits.wall_seconds);
  }
  if (WIFSIGNALED(status)) {
    fail(where, "{}: the library that reads it crashes: signal {}, {} (the file is damaged)", what, WTERMSIG(status),
         ::strsignal(WTERMSIG(status)));
  }
  fail(where, "{}: the library that reads it gives up and ends the program (the file is damaged)", what);
}

}  // namespace etc::data
