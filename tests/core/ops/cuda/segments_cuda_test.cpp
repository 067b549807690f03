// Runs of rows on the emulator against the CPU's.
#include "etc_core/ops/segments.h"

#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("emulated sums and copies of runs of rows have the CPU's bits", "[ops][cuda]") {
  ops::register_cpu_ops();
  ops::register_cuda_ops();
  const std::vector<std::int64_t> offsets = {0, 0, 1, 4, 4, 90, 91, 91};  // empty at both ends and inside, one long
  const std::int64_t segments = std::ssize(offsets) - 1, rows = offsets.back();
  for (const std::int64_t cols : {1, 24, 300}) {  // 300: three panels of columns
    for (const bool add : {false, true}) {
      CAPTURE(cols, add);
      auto long_rows = random_floats(rows * cols, 1), sums = random_floats(segments * cols, 2);
      const auto run = [&](Device device) {
        Guarded summed(segments * cols, 0.5f), spread(rows * cols, -0.25f);
        ops::sum_segments(device, {segments, cols, offsets.data(), long_rows.data(), summed.data(), add});
        ops::spread_segments(device, {segments, cols, offsets.data(), spread.data(), sums.data(), add});
        CHECK(summed.guards_intact());
        CHECK(spread.guards_intact());
        return std::pair(summed.values(), spread.values());
      };
      const auto cpu = run(Device::cpu), cuda = run(Device::cuda);
      CHECK(same_bits(cpu.first, cuda.first));
      CHECK(same_bits(cpu.second, cuda.second));
    }
  }
  const std::vector<std::int64_t> none = {0, 0};  // segments without a row between them
  Guarded sum(3, 1.0f);
  ops::sum_segments(Device::cuda, {1, 3, none.data(), nullptr, sum.data(), false});
  CHECK(sum.values() == std::vector<float>(3, 0.0f));
}
