// Thrust's sort of tokens by id, on Thrust's OpenMP system.
#include "etc_core/ops/cuda/id_runs.h"

#include <algorithm>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("Thrust sorts tokens by id, in token order within an id", "[ops][thrust]") {
  for (const std::int64_t count : {1, 2, 70, 5000}) {
    auto ids = random_ids(count, 40, 3);
    if (count > 2) {
      ids[1] = -5;
      ids[2] = 40;
    }
    const auto before = ids;
    std::vector<std::int32_t> tokens(ids.size()), first(ids.size() + 1, -1);
    const std::int64_t distinct =
        ops::cuda::sort_ids({ids.data(), count}, 40, {tokens.data(), count}, {first.data(), count + 1}, nullptr);
    std::vector<std::pair<std::int32_t, std::int32_t>> expected;  // id, token
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool inside = before[i] >= 0 && before[i] < 40;
      expected.emplace_back(inside ? before[i] : 40, static_cast<std::int32_t>(i));
    }
    std::sort(expected.begin(), expected.end());
    std::vector<std::int32_t> starts;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(ids[i] == expected[i].first);
      CHECK(tokens[i] == expected[i].second);
      if (expected[i].first < 40 && (i == 0 || expected[i].first != expected[i - 1].first)) {
        starts.push_back(static_cast<std::int32_t>(i));
      }
    }
    REQUIRE(distinct == static_cast<std::int64_t>(starts.size()));
    starts.push_back(static_cast<std::int32_t>(
        std::count_if(expected.begin(), expected.end(), [](const auto& pair) { return pair.first < 40; })));
    CHECK(std::vector<std::int32_t>(first.begin(), first.begin() + distinct + 1) == starts);
  }
}
