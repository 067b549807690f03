// Examples and tokens per second since the last line of the metrics; no part of a run's saved state.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace etc {

class Throughput {
 public:
  void add_examples(std::int64_t count) { examples_ += count; }
  void add_tokens(std::int64_t count) { tokens_ += count; }
  void restart() { *this = {}; }

  std::vector<std::pair<std::string, double>> per_second() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return {{"examples_per_second", static_cast<double>(examples_) / seconds},
            {"tokens_per_second", static_cast<double>(tokens_) / seconds}};
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
  std::int64_t examples_ = 0, tokens_ = 0;
};

}  // namespace etc
