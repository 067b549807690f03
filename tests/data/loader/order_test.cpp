#include "data/loader/order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "tests/support/catch.h"

using namespace etc::data;

namespace {

using Ids = std::vector<std::int64_t>;

// All batches from `start` on (at most `most`), as "begin-end" texts.
std::vector<std::string> batches(std::int64_t n, const LoaderOptions& options, std::int64_t start = 0,
                                 std::size_t most = 20) {
  std::vector<std::string> result;
  while (result.size() < most) {
    const auto range = batch_at(start, n, options);
    if (!range) return result;
    result.push_back(std::to_string(range->begin) + "-" + std::to_string(range->end));
    start = range->end;
  }
  return result;
}

LoaderOptions options_of(std::int64_t batch, std::int64_t epochs, bool carry) {
  LoaderOptions options;
  options.batch_examples = batch;
  options.epochs = epochs;
  options.carry_partial = carry;
  return options;
}

}  // namespace

TEST_CASE("an epoch's order holds every example once and depends on seed and epoch alone", "[data][loader]") {
  for (const std::int64_t n : {1, 2, 3, 10, 1000}) {
    Ids all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      Ids order = epoch_order(n, epoch, 5, true);
      CHECK(order == epoch_order(n, epoch, 5, true));
      if (n == 1000) {
        CHECK(order != all);
        CHECK(order != epoch_order(n, epoch + 1, 5, true));
        CHECK(order != epoch_order(n, epoch, 6, true));
      }
      std::sort(order.begin(), order.end());
      CHECK(order == all);
      CHECK(epoch_order(n, epoch, 5, false) == all);
    }
  }
}

TEST_CASE("every order of three examples is equally likely", "[data][loader]") {
  std::map<Ids, int> counts;
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch) ++counts[epoch_order(3, epoch, 1, true)];
  REQUIRE(counts.size() == 6);
  // 1000 of each expected; standard deviation sqrt(6000 * 1/6 * 5/6) = 29; the bound is five of them.
  for (const auto& [order, count] : counts) CHECK(std::abs(count - 1000) < 145);
}

TEST_CASE("a partial batch is carried into the next epoch or handed out short", "[data][loader]") {
  using Texts = std::vector<std::string>;
  // 5 examples, batches of 2, two epochs: epoch 0 owns samples 0-5, epoch 1 owns 5-10.
  CHECK(batches(5, options_of(2, 2, true)) == Texts{"0-2", "2-4", "4-6", "6-8", "8-10"});
  CHECK(batches(5, options_of(2, 2, false)) == Texts{"0-2", "2-4", "4-5", "5-7", "7-9", "9-10"});
  CHECK(batches(5, options_of(4, 2, true)) == Texts{"0-4", "4-8", "8-10"});
  // A data set smaller than a batch: one batch spans several epochs.
  CHECK(batches(2, options_of(5, 4, true)) == Texts{"0-5", "5-8"});
  CHECK(batches(2, options_of(5, 4, false)) == Texts{"0-2", "2-4", "4-6", "6-8"});
  // Endless runs.
  CHECK(batches(3, options_of(2, 0, true), 0, 4) == Texts{"0-2", "2-4", "4-6", "6-8"});
  CHECK(batches(3, options_of(2, 0, false), 0, 3) == Texts{"0-2", "2-3", "3-5"});
  // Resumed at the short batch of an epoch, at the end, and past the end.
  CHECK(batches(5, options_of(2, 2, false), 4) == Texts{"4-5", "5-7", "7-9", "9-10"});
  CHECK(batches(5, options_of(2, 2, true), 10).empty());
  CHECK(batches(5, options_of(2, 2, true), 1000).empty());
}

TEST_CASE("micro-batches are filled greedily up to the limit and hold at least one example", "[data][loader]") {
  CHECK(cut_micro_batches(Ids{}, 10).empty());
  CHECK(cut_micro_batches(Ids{5, 5, 1, 9, 2}, 10) == Ids{2, 2, 1});
  CHECK(cut_micro_batches(Ids{50, 1, 2, 30, 3}, 10) == Ids{1, 2, 1, 1});
  CHECK(cut_micro_batches(Ids{5, 5, 1}, 0) == Ids{3});
  CHECK(cut_micro_batches(Ids{0, 0, 0}, 1) == Ids{3});
  CHECK(cut_micro_batches(Ids{5, 5, 1}, INT64_MAX) == Ids{3});
}

TEST_CASE("a batch of several units is cut as each unit is alone", "[data][loader]") {
  CHECK(cut_micro_batches(Ids{5, 5, 1, 9, 2}, 10, 3) == Ids{2, 1, 1, 1});
  CHECK(cut_micro_batches(Ids{1, 1, 1, 1, 1}, 0, 2) == Ids{2, 2, 1});
  CHECK(cut_micro_batches(Ids{1, 1, 1}, 10, 3) == Ids{3});
  CHECK(cut_micro_batches(Ids{}, 10, 3).empty());
}
