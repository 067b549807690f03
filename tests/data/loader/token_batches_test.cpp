// Batches by a token budget: the published rule, and properties that must hold for any data.
#include "data/loader/token_batches.h"

#include <algorithm>
#include <numeric>

#include "etc_core/base/error.h"
#include "etc_core/base/random.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::data;

namespace {

using Numbers = std::vector<std::int64_t>;

struct Pairs {
  Numbers sources, targets;
};

Pairs made_pairs(std::uint32_t count, std::uint64_t seed) {
  Pairs pairs;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Philox4 dice = philox({i, 0, 0, 0}, seed);
    pairs.sources.push_back(1 + dice[0] % 40);
    pairs.targets.push_back(1 + dice[1] % 50);
  }
  return pairs;
}

std::vector<Numbers> batches_of(const TokenBatches& batches, std::int64_t epoch = 0) {
  const TokenBatches::Epoch plan = batches.epoch(epoch);
  std::vector<Numbers> all;
  std::int64_t begin = 0;
  for (const std::int64_t end : plan.ends) {
    all.emplace_back(plan.order.begin() + begin, plan.order.begin() + end);
    begin = end;
  }
  CHECK(begin == std::ssize(plan.order));
  return all;
}

std::vector<Numbers> unshuffled(const Numbers& sources, const Numbers& targets, const TokenBudget& budget) {
  return batches_of(TokenBatches(sources, targets, budget, 1, false));
}

std::int64_t cost(const Pairs& pairs, const Numbers& batch, bool padded) {
  std::int64_t sum = 0, longest = 0;
  for (const std::int64_t i : batch) {
    const auto at = static_cast<std::size_t>(i);
    sum += pairs.sources[at] + pairs.targets[at];
    longest = std::max({longest, pairs.sources[at], pairs.targets[at]});
  }
  return padded ? std::ssize(batch) * longest : sum;
}

}  // namespace

TEST_CASE("padded batches are filled as in the worked example", "[loader]") {
  const Numbers lengths = {3, 3, 3, 4, 5};
  CHECK(unshuffled(lengths, lengths, {12, true, 1}) == std::vector<Numbers>{{0, 1, 2}, {3, 4}});
  // The larger side counts; pairs are sorted by source length, then by target length.
  CHECK(unshuffled({2, 1, 1, 1}, {2, 6, 2, 2}, {6, true, 1}) == std::vector<Numbers>{{2, 3}, {1}, {0}});
}

TEST_CASE("a full padded batch keeps a multiple of eight pairs, the rest begin the next one", "[loader]") {
  const Numbers lengths(30, 2);
  std::vector<std::size_t> sizes;
  for (const Numbers& batch : unshuffled(lengths, lengths, {38, true, 8})) sizes.push_back(batch.size());
  CHECK(sizes == std::vector<std::size_t>{16, 14});  // 19 fit: 16 stay, 3 are kept for the next batch
  sizes.clear();
  for (const Numbers& batch : unshuffled(lengths, lengths, {14, true, 8})) sizes.push_back(batch.size());
  CHECK(sizes == std::vector<std::size_t>{7, 7, 7, 7, 2});
}

TEST_CASE("ragged batches count the tokens of both sides and nothing else", "[loader]") {
  CHECK(unshuffled({1, 2, 3, 4}, {9, 8, 7, 6}, {20, false, 8}) == std::vector<Numbers>{{0, 1}, {2, 3}});
  CHECK(unshuffled({1, 2, 3, 4}, {9, 8, 7, 6}, {29, false, 8}) == std::vector<Numbers>{{0, 1}, {2, 3}});
  CHECK(unshuffled({1, 2, 3, 4}, {9, 8, 7, 6}, {30, false, 8}) == std::vector<Numbers>{{0, 1, 2}, {3}});
}

TEST_CASE("every pair comes once in each epoch and no batch exceeds the budget", "[loader]") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Pairs pairs = made_pairs(400, seed);
    for (const bool padded : {false, true}) {
      CAPTURE(seed, padded);
      const TokenBudget budget{100 + 20 * static_cast<std::int64_t>(seed), padded, padded ? 8 : 1};
      const TokenBatches batches(pairs.sources, pairs.targets, budget, seed, true);
      std::vector<Numbers> first = batches_of(batches, 0), second = batches_of(batches, 1);
      for (const Numbers& batch : first) CHECK(cost(pairs, batch, padded) <= budget.tokens);
      CHECK(first != second);
      CHECK(first == batches_of(batches, 0));
      // Epochs have the same batches in another order.
      std::sort(first.begin(), first.end());
      std::sort(second.begin(), second.end());
      CHECK(first == second);
      Numbers all = batches.epoch(5).order;
      std::sort(all.begin(), all.end());
      Numbers expected(400);
      std::iota(expected.begin(), expected.end(), 0);
      CHECK(all == expected);
    }
  }
}

TEST_CASE("another seed puts other pairs together", "[loader]") {
  const Pairs pairs = made_pairs(400, 1);
  const auto sorted = [&](std::uint64_t seed) {
    auto all = batches_of(TokenBatches(pairs.sources, pairs.targets, {100, false, 1}, seed, true));
    std::sort(all.begin(), all.end());
    return all;
  };
  CHECK(sorted(1) == sorted(1));
  CHECK(sorted(1) != sorted(2));
}

TEST_CASE("a pair beyond the budget and lists that do not fit are errors", "[loader]") {
  CHECK_THROWS_WITH(unshuffled({1, 30}, {1, 4}, {33, false, 1}),
                    "token batches: example 1 has 30 and 4 tokens: expected a budget of at least 34, got 33");
  CHECK_THROWS_WITH(unshuffled({1, 30}, {1, 4}, {29, true, 1}),
                    "token batches: example 1 has 30 and 4 tokens: expected a budget of at least 30, got 29");
  CHECK_THROWS_WITH(unshuffled({1, 2}, {1}, {9, true, 1}),
                    "token batches: expected a target for each source, got 1 and 2");
  CHECK_THROWS_AS(unshuffled({1}, {1}, {9, true, 0}), Error);
  CHECK(unshuffled({}, {}, {9, true, 1}).empty());
}
