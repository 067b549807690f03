// The largest numbers of runs of rows against their definition.
#include "etc_core/ops/top_k.h"

#include "etc_core/base/parallel.h"
#include "etc_core/ops/register.h"
#include "tests/core/ops/top_k_case.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("the largest numbers of each column of each run of rows, of equals the lower row", "[core][ops]") {
  ops::register_cpu_ops();
  for (const bool with_faults : {false, true}) {
    for (const std::int64_t cols : {1, 2, 4, 6, 10}) {
      for (const std::int64_t k : {1, 2, 5, 100, 400}) {
        CAPTURE(with_faults, cols, k);
        const TopKCase given = top_k_case(cols, k, with_faults);
        const auto expected = top_k_by_definition(given);
        for (const int threads : {1, 2, 4}) {
          set_thread_count(threads);
          std::vector<ops::Ranked> top(expected.size(), {7, 7});
          ops::top_k(Device::cpu, {given.segments(), cols, k, given.offsets.data(), given.z.data(), top.data()});
          CHECK(same_entries(top, expected));
        }
      }
    }
  }
  set_thread_count(2);
}

TEST_CASE("of numbers that are all equal the lowest rows are the largest, and nothing behind the list changes",
          "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t rows : {1, 2, 6, 10, 1000}) {
    for (const std::int64_t k : {1, 6, 1001}) {
      CAPTURE(rows, k);
      TopKCase given;
      given.offsets = {0, rows};
      given.cols = 1;
      given.k = k;
      for (std::int64_t row = 0; row < rows; ++row) given.z.push_back(row % 2 == 0 ? 0.0f : -0.0f);
      const auto expected = top_k_by_definition(given);
      for (std::int64_t i = 0; i < k; ++i) {
        REQUIRE(expected[static_cast<std::size_t>(i)].row == (i < rows ? i : -1));
      }
      std::vector<ops::Ranked> top(expected.size() + 2, {7, 7});
      ops::top_k(Device::cpu, {1, 1, k, given.offsets.data(), given.z.data(), top.data() + 1});
      REQUIRE(same_entries({top.begin() + 1, top.end() - 1}, expected));
      REQUIRE(same_entries({top.front(), top.back()}, {{7, 7}, {7, 7}}));
    }
  }
}

TEST_CASE("top_k says what is wrong with its arguments", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<float> z(8, 1.0f);
  std::vector<ops::Ranked> top(8);
  std::vector<std::int64_t> offsets = {0, 4, 2};
  ops::TopK args{2, 2, 0, nullptr, nullptr, nullptr};
  const auto require = [&](const char* message) { REQUIRE_THROWS_WITH(ops::top_k(Device::cpu, args), message); };
  require("top_k: sizes: expected S >= 0, n >= 1, k >= 1, got [S=2, n=2, k=0]");
  args.k = 2;
  require("top_k: offsets are missing (null)");
  args.offsets = offsets.data();
  require("top_k: offsets: expected non-decreasing, got 2 after 4 at 2");
  offsets = {1, 2, 4};
  require("top_k: offsets: expected the first to be 0, got 1");
  offsets = {0, 2, 4};
  require("top_k: top is missing (null)");
  args.top = top.data();
  require("top_k: z is missing (null)");
  args.z = z.data();
  offsets[2] = std::int64_t{1} << 31;
  require("top_k: expected at most 2147483647 numbers and lists, got [T=2147483648, S=2, n=2]");
}
