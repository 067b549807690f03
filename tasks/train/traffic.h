// Statistics for the log: what the processes of a run sent each other.
#pragma once

#include <cstdint>

#include "etc_core/comm/communicator.h"
#include "etc_core/optim/shards.h"

namespace etc {

class Traffic {
 public:
  // Counts from construction on.
  explicit Traffic(Communicator& processes)
      : processes_(processes), bytes_(processes.bytes_sent()), seconds_(processes.seconds()) {}

  // Logs how many bytes all processes sent per step, averaged over `steps`, and the communication time of the process
  // that waited longest. A collective call; a single process logs nothing.
  void log(std::int64_t steps) const;

 private:
  Communicator& processes_;
  std::int64_t bytes_;
  double seconds_;
};

// Logs how many processes share the work, and how; a single process logs nothing.
void log_division(const Division& division, bool divided_moments);

}  // namespace etc
