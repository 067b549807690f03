// What several processes sent each other in a run, for its log.
#pragma once

#include <cstdint>

#include "etc_core/comm/communicator.h"
#include "etc_core/optim/shards.h"

namespace etc {

class Traffic {
 public:
  // From now on.
  explicit Traffic(Communicator& processes)
      : processes_(processes), bytes_(processes.bytes_sent()), seconds_(processes.seconds()) {}

  // Says how many bytes all sent in one of so many steps, and how long the process that waited longest was at it. A call
  // of all processes; one alone says nothing.
  void log(std::int64_t steps) const;

 private:
  Communicator& processes_;
  std::int64_t bytes_;
  double seconds_;
};

// Says how many processes share the work, and how; nothing of one process.
void log_division(const Division& division, bool divided_moments);

}  // namespace etc
