// When a run saves what it goes on from: every so many steps, or after so much time.
#pragma once

#include <chrono>
#include <cstdint>

#include "etc_core/base/json_fwd.h"
#include "etc_core/comm/communicator.h"

namespace etc {

class SaveSchedule {
 public:
  // save_every: steps, an integer from 1 on, or a time as base/duration.h has it, "15min". Throws UsageError on others.
  explicit SaveSchedule(const Json& save_every);

  // Whether to save now, `step` steps being done; time counts from the last such answer on. A call of all processes, which
  // get the first one's answer.
  bool due(std::int64_t step, Communicator& processes);

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t steps_ = 0;  // 0: by time
  double seconds_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace etc
