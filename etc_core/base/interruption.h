// Cancelling long computations and waits: between its parts, the work asks whether to go on. check_interruption() is for
// programs that use the library, told_to_stop() for the stop signal of `etc` (tasks/train/stop_signal.h).
#pragma once

#include <chrono>
#include <functional>

#include "etc_core/base/not_copied.h"

namespace etc {

// While an object lives, check_interruption() on its thread calls its function; of several objects, the latest one's.
class InterruptionWatch : NotCopied {
 public:
  static constexpr std::chrono::milliseconds kPause{100};

  // ask: throws an exception to end the work; called at most once per kPause, so it need not be fast.
  explicit InterruptionWatch(std::function<void()> ask);
  ~InterruptionWatch();

 private:
  friend void check_interruption();

  std::function<void()> ask_;
  std::chrono::steady_clock::time_point asked_;
  InterruptionWatch* before_;
};

// Called between the layers of an encoder. Throws what the watch's ask() throws; does nothing without a watch.
void check_interruption();

// While an object lives, told_to_stop() on every thread returns what its function returns; of several objects, the latest
// one's. They end in the reverse order of their creation.
class StopQuery : NotCopied {
 public:
  using Ask = bool (*)();

  explicit StopQuery(Ask ask);
  ~StopQuery();

 private:
  Ask before_;
};

// Asked by waits of unknown length, such as for the reader of a FIFO: a signal that arrives just before a system call
// does not end that call, so the wait has to be polled. False without a StopQuery.
bool told_to_stop();

}  // namespace etc
