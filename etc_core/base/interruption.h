// Cancelling long computations: between its parts, the work asks the caller whether to go on. For programs that use the
// library; `etc` itself has the stop signal (tasks/train/stop_signal.h).
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

}  // namespace etc
