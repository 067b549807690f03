// Sums and copies of runs of rows against their definition.
#include "etc_core/ops/segments.h"

#include "etc_core/ops/register.h"
#include "tests/reference/segments.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

using Offsets = std::vector<std::int64_t>;

// 100 segments of 0 to 6 rows: more than one task handles.
Offsets many_segments() {
  Offsets offsets = {0};
  for (std::int64_t s = 0; s < 100; ++s) offsets.push_back(offsets.back() + s * s % 7);
  return offsets;
}

// Empty at both ends and inside; all empty; one row; one long segment; none at all.
const std::vector<Offsets> kAllOffsets = {
    {0, 0, 1, 4, 4, 90, 91, 91}, {0, 0, 0}, {0, 1}, {0, 1000}, {0}, many_segments()};

std::vector<float> sum_segments(const Offsets& offsets, std::int64_t cols, std::vector<float> rows,
                                const std::vector<float>& before, bool add) {
  Guarded sums(before);
  ops::sum_segments(Device::cpu, {std::ssize(offsets) - 1, cols, offsets.data(), rows.data(), sums.data(), add});
  REQUIRE(sums.guards_intact());
  return sums.values();
}

std::vector<float> spread_segments(const Offsets& offsets, std::int64_t cols, std::vector<float> values,
                                   const std::vector<float>& before, bool add) {
  Guarded rows(before);
  ops::spread_segments(Device::cpu, {std::ssize(offsets) - 1, cols, offsets.data(), rows.data(), values.data(), add});
  REQUIRE(rows.guards_intact());
  return rows.values();
}

}  // namespace

TEST_CASE("sums of runs of rows equal their definition, also of none and of very different numbers", "[core][ops]") {
  ops::register_cpu_ops();
  for (const Offsets& offsets : kAllOffsets) {
    for (const std::int64_t cols : {1, 2, 6, 10, 17, 300}) {
      for (const bool add : {false, true}) {
        CAPTURE(offsets, cols, add);
        const std::int64_t segments = std::ssize(offsets) - 1;
        const auto rows = mixed_floats(offsets.back() * cols, 1), before = mixed_floats(segments * cols, 2);
        const Reals zeros(before.size());
        const Reals expected = reference_sum_segments(offsets, cols, to_double(rows), add ? to_double(before) : zeros);
        Reals tolerances = reference_sum_segments(offsets, cols, magnitudes(rows), add ? magnitudes(before) : zeros);
        // Adding a row of the segment costs one rounding, at most relative to the sum of the magnitudes.
        for (std::size_t i = 0; i < tolerances.size(); ++i) {
          const std::size_t segment = i / static_cast<std::size_t>(cols);
          tolerances[i] *= static_cast<double>(offsets[segment + 1] - offsets[segment]) * 0x1p-24;
        }
        const auto run = [&] { return sum_segments(offsets, cols, rows, before, add); };
        REQUIRE(near_each("sums", run(), expected, tolerances));
        REQUIRE(same_bits_for_any_thread_count(run));
      }
    }
  }
}

TEST_CASE("copies of a row to its run equal their definition", "[core][ops]") {
  ops::register_cpu_ops();
  for (const Offsets& offsets : kAllOffsets) {
    for (const std::int64_t cols : {1, 2, 6, 10, 17, 300}) {
      CAPTURE(offsets, cols);
      const std::int64_t segments = std::ssize(offsets) - 1;
      const auto values = mixed_floats(segments * cols, 1), before = mixed_floats(offsets.back() * cols, 2);
      const auto run = [&](bool add) { return spread_segments(offsets, cols, values, before, add); };
      // A copy is exact; a sum of two is rounded once.
      const Reals zeros(before.size());
      const Reals copies = reference_spread_segments(offsets, cols, to_double(values), zeros);
      REQUIRE(near_each("copies", run(false), copies, zeros));
      const Reals sums = reference_spread_segments(offsets, cols, to_double(values), to_double(before));
      REQUIRE(near_all("sums", run(true), sums, 0, 0x1p-24));
      for (const bool add : {false, true}) REQUIRE(same_bits_for_any_thread_count([&] { return run(add); }));
    }
  }
}

TEST_CASE("central differences confirm that sums and copies of runs of rows are each other's gradient", "[core][ops]") {
  ops::register_cpu_ops();
  const Offsets offsets = {0, 0, 3, 4, 4, 9, 9};
  for (const std::int64_t cols : {1, 2, 6}) {
    CAPTURE(cols);
    const auto rows = random_floats(9 * cols, 1), drows = random_floats(9 * cols, 2);
    const auto sums = random_floats(6 * cols, 3), dsums = random_floats(6 * cols, 4);
    const Reals no_rows(rows.size()), no_sums(sums.size());
    const auto loss_of_sums = [&](const Reals& x) {
      return inner_product(reference_sum_segments(offsets, cols, x, no_sums), to_double(dsums));
    };
    const auto loss_of_copies = [&](const Reals& x) {
      return inner_product(reference_spread_segments(offsets, cols, x, no_rows), to_double(drows));
    };
    // The losses are linear, so a step of 1 is exact. For copies only the rounding in double of a loss of 54 terms
    // below 2^7 remains; sums of up to five gradients below 1 are rounded four times.
    const std::vector<float> rows_before(rows.size()), sums_before(sums.size());
    REQUIRE(near_all("gradient of sums", spread_segments(offsets, cols, dsums, rows_before, false),
                     central_differences(loss_of_sums, to_double(rows), 1), 1e-12));
    REQUIRE(near_all("gradient of copies", sum_segments(offsets, cols, drows, sums_before, false),
                     central_differences(loss_of_copies, to_double(sums), 1), 4 * 5 * 0x1p-24));
  }
}

TEST_CASE("a segment's sum has the same bits alone and among others", "[core][ops]") {
  ops::register_cpu_ops();
  const Offsets offsets = many_segments();
  const std::int64_t cols = 10;
  const auto rows = mixed_floats(offsets.back() * cols, 1);
  const auto all = sum_segments(offsets, cols, rows, std::vector<float>(100 * cols), false);
  for (std::int64_t s = 0; s < 100; s += 9) {
    const auto at = static_cast<std::size_t>(s);
    const std::vector<float> own(rows.begin() + offsets[at] * cols, rows.begin() + offsets[at + 1] * cols);
    const auto alone = sum_segments({0, offsets[at + 1] - offsets[at]}, cols, own, std::vector<float>(cols), false);
    REQUIRE(same_bits(alone, {all.begin() + s * cols, all.begin() + (s + 1) * cols}));
  }
}

TEST_CASE("operators on runs of rows say what is wrong with their arguments", "[core][ops]") {
  ops::register_cpu_ops();
  std::vector<float> rows(8), sums(4);
  std::vector<std::int64_t> offsets = {0, 4, 2};
  ops::Segments args{2, 0, nullptr, nullptr, nullptr, false};
  const auto require = [&](const std::string& message) {
    REQUIRE_THROWS_WITH(ops::sum_segments(Device::cpu, args), "sum_segments: " + message);
    REQUIRE_THROWS_WITH(ops::spread_segments(Device::cpu, args), "spread_segments: " + message);
  };
  require("sizes: expected S >= 0, H >= 1, got [S=2, H=0]");
  args.cols = 2;
  require("offsets are missing (null)");
  args.offsets = offsets.data();
  offsets = {1, 2, 4};
  require("offsets: expected the first to be 0, got 1");
  offsets = {0, 4, 2};
  require("offsets: expected non-decreasing, got 2 after 4 at 2");
  offsets = {0, 2, 4};
  require("of_segments is missing (null)");
  args.of_segments = sums.data();
  require("rows are missing (null)");
}
