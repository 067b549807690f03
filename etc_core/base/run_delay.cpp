#include "etc_core/base/run_delay.h"

#include <chrono>
#include <cstdio>
#include <memory>

namespace etc {

namespace {

// Nanoseconds; -1 where the system keeps no such count.
std::int64_t run_delay_of_thread() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/thread-self/schedstat", "r"),
                                                             std::fclose);
  long long computed = 0, delay = 0;
  if (file == nullptr || std::fscanf(file.get(), "%lld %lld", &computed, &delay) != 2 || computed == 0) return -1;
  return delay;
}

}  // namespace

bool RunDelay::high() {
  const std::int64_t now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (in_window(now)) return now < until_;
  const std::int64_t delay = run_delay_of_thread();
  return delay < 0 || high(now, delay);
}

bool RunDelay::high(std::int64_t now, std::int64_t delay) {
  if (!in_window(now)) {
    const auto span = static_cast<double>(now - start_);
    if (started_ && static_cast<double>(delay - delay_) >= kShare * span) until_ = now + kMemory;
    started_ = true;
    start_ = now;
    delay_ = delay;
  }
  return now < until_;
}

}  // namespace etc
