#include "tasks/train/save_schedule.h"

#include "etc_core/base/duration.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc {

SaveSchedule::SaveSchedule(const Json& save_every) {
  constexpr const char* kWhere = "config: training.save_every";
  if (save_every.is_string()) {
    seconds_ = parse_duration(save_every.get<std::string>(), kWhere);
    return;
  }
  const bool steps = save_every.is_number_integer() && save_every >= 1 && save_every <= INT64_MAX;
  if (!steps)
    fail_usage(kWhere, "expected steps, an integer of at least 1, or a time such as \"15min\", got {}",
               json_line(save_every));
  steps_ = save_every.get<std::int64_t>();
}

bool SaveSchedule::due(std::int64_t step, Communicator& processes) {
  if (steps_ > 0) return step > 0 && step % steps_ == 0;
  const bool passed = std::chrono::duration<double>(Clock::now() - last_).count() >= seconds_;
  if (!any_of(processes, step > 0 && processes.first() && passed)) return false;
  last_ = Clock::now();
  return true;
}

}  // namespace etc
