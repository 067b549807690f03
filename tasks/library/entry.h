// What every call of the library passes through: the machine made ready, progress handed on, errors made the library's.
#pragma once

#include <csignal>
#include <exception>
#include <mutex>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/log_receiver.h"
#include "etc_core/base/not_copied.h"
#include "tasks/library/longetc.h"

namespace longetc {

// What listens for signals leaves a hangup and a broken pipe harmless after one, for a process that is about to end; this
// one goes on, with its own handlers.
class KeptHandlers : etc::NotCopied {
 public:
  KeptHandlers();
  ~KeptHandlers();

 private:
  struct sigaction hangup_ {};
  struct sigaction pipe_ {};
};

// A call that may take long: whoever reports progress in it tells the caller's function, which may ask to stop.
class LongCall {
 public:
  explicit LongCall(const Progress& progress);

  // Of work that has no other way to report. Throws etc::Interrupted where the caller wants to stop.
  void report(const ProgressReport& report);
  // What the caller's function threw, if it did; else nothing.
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

// CPU kernels are registered, the calling thread may be interrupted safely while it computes. Throws etc::Error where the
// processor lacks what they need. Any number of calls.
void make_ready();

// Throws what is being handled as longetc::Error.
[[noreturn]] void throw_as_own();

// Runs the call and returns what it does.
template <typename Call>
auto guarded(Call&& call) {
  try {
    make_ready();
    return call();
  } catch (...) {
    throw_as_own();
  }
}

// The same of a call that reports progress: call(LongCall&).
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
