// The choice of the number of threads for short loops, with a simulated clock and simulated loops.
#include "etc_core/base/team_size.h"

#include <functional>

#include "tests/support/catch.h"

using etc::TeamSize;

namespace {

constexpr std::int64_t kMicrosecond = 1000, kSecond = 1'000'000'000;

// Runs loops of five kinds in turn until `until`; `cost`: nanoseconds of a loop for a number of threads.
struct Machine {
  TeamSize size;
  std::int64_t now = 0;
  int last = 0;  // threads of the last loop

  // The fraction of the time that was spent on `threads` threads.
  double run(std::int64_t until, int most, int threads, const std::function<std::int64_t(int)>& cost) {
    const std::int64_t start = now;
    std::int64_t on = 0;
    for (std::uint64_t i = 0; now < until; ++i) {
      last = size.begin(i % 5, most, now);
      const std::int64_t time = cost(last) * static_cast<std::int64_t>(1 + i % 5);
      now += time;
      if (last == threads) on += time;
      size.end(now);
    }
    return static_cast<double>(on) / static_cast<double>(now - start);
  }
};

}  // namespace

TEST_CASE("short loops stay on all threads where these are faster", "[base][threads]") {
  Machine machine;
  const auto halves = [](int threads) { return 40 * kMicrosecond / threads; };
  // In the long run, trials take at most a hundredth of the time.
  CHECK(machine.run(2 * kSecond, 2, 2, halves) > 0.9);
  CHECK(machine.run(22 * kSecond, 2, 2, halves) > 0.99);
}

TEST_CASE("short loops leave threads that make them slower, and return to them when they no longer do",
          "[base][threads]") {
  Machine machine;
  const auto slower = [](int threads) { return threads == 1 ? 40 * kMicrosecond : 50 * kMicrosecond; };
  const auto faster = [](int threads) { return threads == 1 ? 40 * kMicrosecond : 22 * kMicrosecond; };
  machine.run(kSecond, 2, 1, slower);
  CHECK(machine.run(20 * kSecond, 2, 1, slower) > 0.98);
  machine.run(23 * kSecond, 2, 2, faster);
  CHECK(machine.run(40 * kSecond, 2, 2, faster) > 0.98);
}

TEST_CASE("of many threads as many are found as make short loops fastest", "[base][threads]") {
  Machine machine;
  // Each thread has a start-up cost of 3 microseconds, so 4 of 16 threads are best.
  const auto cost = [](int threads) { return 60 * kMicrosecond / threads + 3 * kMicrosecond * threads; };
  machine.run(2 * kSecond, 16, 4, cost);
  CHECK(machine.run(20 * kSecond, 16, 4, cost) > 0.95);
}

TEST_CASE("long loops run on all threads, whatever short ones do", "[base][threads]") {
  Machine machine;
  for (int i = 0; i < 1000; ++i) {
    const int threads = machine.size.begin(77, 4, machine.now);
    CHECK(threads == 4);
    machine.now += 5'000 * kMicrosecond / threads + 1000 * kMicrosecond;
    machine.size.end(machine.now);
  }
}

TEST_CASE("equal times on any count change nothing", "[base][threads]") {
  Machine machine;
  CHECK(machine.run(10 * kSecond, 8, 8, [](int) { return 30 * kMicrosecond; }) > 0.95);
  CHECK(machine.size.begin(0, 8, machine.now) == 8);
}
