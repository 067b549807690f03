// Metrics of a running server in Prometheus text format.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tasks/serve/scheduler.h"

namespace etc::serve {

// Thread-safe.
class Metrics {
 public:
  // endpoint: the path of an existing endpoint, or "other".
  void count(const std::string& endpoint, int status, double seconds);
  // Text format 0.0.4.
  std::string text(const SchedulerCounts& scheduler, std::int64_t connections) const;

 private:
  static constexpr std::array<double, 11> kBounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};  // seconds
  struct Times {
    std::array<std::int64_t, kBounds.size() + 1> buckets{};
    double sum = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::int64_t> requests_;
  std::map<std::string, Times> times_;
};

}  // namespace etc::serve
