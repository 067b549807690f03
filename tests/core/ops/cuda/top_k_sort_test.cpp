// Thrust's sort of numbers within runs of rows, on Thrust's OpenMP system.
#include "etc_core/ops/cuda/top_k_sort.h"

#include "tests/core/ops/top_k_case.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("Thrust puts the largest numbers of each run of rows first, of equals the lower row", "[ops][thrust]") {
  for (const bool with_faults : {false, true}) {
    for (const std::int64_t cols : {1, 4}) {
      for (const std::int64_t k : {1, 5, 100}) {
        CAPTURE(with_faults, cols, k);
        const TopKCase given = top_k_case(cols, k, with_faults);
        const auto expected = top_k_by_definition(given);
        const std::int64_t count = std::ssize(given.z);
        std::vector<std::uint64_t> keys(given.z.size());
        std::vector<std::int32_t> rows(given.z.size());
        std::vector<ops::Ranked> top(expected.size(), {7, 7});
        ops::cuda::sort_top_k({given.segments(),
                               cols,
                               k,
                               {given.offsets.data(), std::ssize(given.offsets)},
                               {given.z.data(), count},
                               {keys.data(), count},
                               {rows.data(), count},
                               {top.data(), std::ssize(top)}},
                              nullptr);
        CHECK(same_entries(top, expected));
      }
    }
  }
}
