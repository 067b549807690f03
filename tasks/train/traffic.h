// What several processes sent each other in a run, for its log.
#pragma once

#include <cstdint>

#include "etc_core/comm/communicator.h"

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

}  // namespace etc
