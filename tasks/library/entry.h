// Common entry code of every library call: prepares the machine, forwards progress, and converts errors to
// longetc::Error.
#pragma once

#include <csignal>
#include <exception>
#include <mutex>

#include "etc_core/base/error.h"
#include "etc_core/base/log_receiver.h"
#include "etc_core/base/not_copied.h"
#include "tasks/library/longetc.h"

namespace longetc {

// Restores the caller's handlers. After a signal, a StopSignal leaves SIGHUP and SIGPIPE ignored for a process that is
// about to end; this process continues, with its own handlers.
class KeptHandlers : etc::NotCopied {
 public:
  KeptHandlers();
  ~KeptHandlers();

 private:
  struct sigaction hangup_ {};
  struct sigaction pipe_ {};
};

// A call that may take long: progress reported within it is passed to the caller's function, which may ask to stop.
class LongCall {
 public:
  explicit LongCall(const Progress& progress);

  // For work that has no other way to report. Throws etc::Interrupted if the caller asks to stop.
  void report(const ProgressReport& report);
  // Rethrows the exception of the caller's function, if it threw one.
  void rethrow() const;

 private:
  void receive(const etc::ProgressReport& report);

  const KeptHandlers kept_;
  const Progress& progress_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::exception_ptr thrown_;
  etc::ProgressReceiver receiver_;
};

// Registers CPU kernels and makes interrupting the calling thread safe while it computes. Throws etc::Error if the
// processor lacks required features. May be called any number of times.
void make_ready();

// Rethrows the current exception as longetc::Error.
[[noreturn]] void throw_as_own();

// Runs the call and returns its result.
template <typename Call>
auto guarded(Call&& call) {
  try {
    make_ready();
    return call();
  } catch (...) {
    throw_as_own();
  }
}

// The same for a call that reports progress: call(LongCall&).
template <typename Call>
auto guarded_long(const Progress& progress, Call&& call) {
  return guarded([&] {
    LongCall watched(progress);
    try {
      auto result = call(watched);
      watched.rethrow();
      return result;
    } catch (const etc::Interrupted&) {
      watched.rethrow();
      throw;
    }
  });
}

}  // namespace longetc
