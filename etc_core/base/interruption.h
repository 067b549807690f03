// Long work done for somebody who may change their mind: between its parts it asks whether to go on. For programs that
// call the library; `etc` itself has the stop signal (tasks/train/stop_signal.h).
#pragma once

#include <chrono>
#include <functional>

#include "etc_core/base/not_copied.h"

namespace etc {

// While one lives, check_interruption() on its thread asks it, the latest of several.
class InterruptionWatch : NotCopied {
 public:
  static constexpr std::chrono::milliseconds kPause{100};

  // ask: throws what is to end the work; called at most once in kPause, so it may take its time.
  explicit InterruptionWatch(std::function<void()> ask);
  ~InterruptionWatch();

 private:
  friend void check_interruption();

  std::function<void()> ask_;
  std::chrono::steady_clock::time_point asked_;
  InterruptionWatch* before_;
};

// Called between the layers of an encoder. Throws what the watch's ask() throws; does nothing where there is no watch.
void check_interruption();

}  // namespace etc
