#include "tasks/train/traffic.h"

#include <algorithm>

#include "etc_core/base/log.h"
#include "etc_core/comm/gather_values.h"

namespace etc {

void Traffic::log(std::int64_t steps) const {
  if (processes_.size() == 1 || steps == 0) return;
  struct Sent {
    double bytes = 0, seconds = 0;
  };
  const Sent own{static_cast<double>(processes_.bytes_sent() - bytes_), processes_.seconds() - seconds_};
  Sent all;
  double most = 0;  // sent by one of them
  for (const Sent& each : gather_values<Sent>(processes_, {&own, 1})) {
    all.bytes += each.bytes;
    most = std::max(most, each.bytes);
    all.seconds = std::max(all.seconds, each.seconds);
  }
  const auto count = static_cast<double>(steps);
  log::info("{} processes sent {:.3f} MB a step, none more than {:.3f} MB, and waited for it for up to {:.4f} s a step",
            processes_.size(), all.bytes / 1e6 / count, most / 1e6 / count, all.seconds / count);
}

void log_division(const Division& division, bool divided_moments) {
  if (division.processes.size() == 1) return;
  log::info("{} processes{}{}", division.processes.size(), divided_moments ? ", each with its part of the moments" : "",
            division.rounds ? ", gradients go from GPU to GPU" : "");
}

}  // namespace etc
