// When a run saves its checkpoint `last`: after a number of steps, or after an interval of time.
#pragma once

#include <chrono>
#include <cstdint>

#include "etc_core/base/json_fwd.h"
#include "etc_core/comm/communicator.h"

namespace etc {

class SaveSchedule {
 public:
  // save_every: a number of steps from 1 on, or a time as in base/duration.h, "15min". Throws UsageError for other
  // values.
  explicit SaveSchedule(const Json& save_every);

  // Whether to save now, after `step` steps; time is measured since this last returned true. A collective call: all
  // processes get the answer of the first one.
  bool due(std::int64_t step, Communicator& processes);

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t steps_ = 0;  // 0: by time
  double seconds_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace etc
