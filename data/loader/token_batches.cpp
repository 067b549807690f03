#include "data/loader/token_batches.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "data/loader/order.h"
#include "etc_core/base/error.h"
#include "etc_core/base/random.h"

namespace etc::data {

namespace {

constexpr std::uint64_t kPairStream = 0x7061697273ull, kBatchStream = 0x62617463686573ull;  // "pairs", "batches"

// Fills batches with pairs in the order given.
class Filling {
 public:
  Filling(std::span<const std::int64_t> sources, std::span<const std::int64_t> targets, const TokenBudget& budget)
      : sources_(sources), targets_(targets), budget_(budget) {}

  void take(std::int64_t pair) {
    const std::int64_t alone = budget_.padded ? longest_of(pair) : sum_of(pair);
    if (alone > budget_.tokens) {
      const std::int64_t targets = targets_[static_cast<std::size_t>(pair)];  // or global tokens; a task may have none
      fail("token batches", "example {} has {}{} tokens: expected a budget of at least {}, got {}", pair,
           sources_[static_cast<std::size_t>(pair)], targets > 0 ? fmt::format(" and {}", targets) : "", alone,
           budget_.tokens);
    }
    add(pair);
    // All open pairs except the last one form a batch.
    while (cost() > budget_.tokens) close(std::ssize(open_) - 1);
  }

  // Closes the open batch, if any, and returns the pairs in order and the end of each batch.
  std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> finish() {
    if (!open_.empty()) put(std::ssize(open_));
    return {std::move(pairs_), std::move(ends_)};
  }

 private:
  std::int64_t sum_of(std::int64_t pair) const {
    return sources_[static_cast<std::size_t>(pair)] + targets_[static_cast<std::size_t>(pair)];
  }
  std::int64_t longest_of(std::int64_t pair) const {
    return std::max(sources_[static_cast<std::size_t>(pair)], targets_[static_cast<std::size_t>(pair)]);
  }

  // Of the open pairs.
  std::int64_t cost() const { return budget_.padded ? std::ssize(open_) * longest_ : sum_; }

  void add(std::int64_t pair) {
    open_.push_back(pair);
    sum_ += sum_of(pair);
    longest_ = std::max(longest_, longest_of(pair));
  }

  // Makes a batch of the first `count` open pairs; the rule of multiples may keep some of them back.
  void close(std::int64_t count) {
    if (!budget_.padded) return put(count);
    const std::int64_t multiple = budget_.multiple;
    put(std::max(count / multiple * multiple, count % multiple));
  }

  void put(std::int64_t count) {
    pairs_.insert(pairs_.end(), open_.begin(), open_.begin() + count);
    ends_.push_back(std::ssize(pairs_));
    const std::vector<std::int64_t> kept_back(open_.begin() + count, open_.end());
    open_.clear();
    sum_ = longest_ = 0;
    for (const std::int64_t pair : kept_back) add(pair);
  }

  std::span<const std::int64_t> sources_, targets_;
  const TokenBudget& budget_;
  std::vector<std::int64_t> open_, pairs_, ends_;
  std::int64_t sum_ = 0, longest_ = 0;  // of the open pairs
};

}  // namespace

TokenBatches::TokenBatches(std::span<const std::int64_t> sources, std::span<const std::int64_t> targets,
                           const TokenBudget& budget, std::uint64_t seed, bool shuffle)
    : seed_(seed), shuffle_(shuffle) {
  if (sources.size() != targets.size()) {
    fail("token batches", "expected a target for each source, got {} and {}", targets.size(), sources.size());
  }
  if (budget.tokens < 1 || budget.multiple < 1) {
    fail("token batches", "expected a budget and a multiple of at least 1, got {} and {}", budget.tokens,
         budget.multiple);
  }
  std::vector<std::int64_t> order = epoch_order(std::ssize(sources), 0, mix_key(seed, kPairStream), shuffle);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    return sources[i] != sources[j] ? sources[i] < sources[j] : targets[i] < targets[j];
  });
  Filling filling(sources, targets, budget);
  for (const std::int64_t pair : order) filling.take(pair);
  std::tie(pairs_, ends_) = filling.finish();
}

TokenBatches::Epoch TokenBatches::epoch(std::int64_t epoch) const {
  Epoch result;
  result.order.reserve(pairs_.size());
  for (const std::int64_t batch : epoch_order(size(), epoch, mix_key(seed_, kBatchStream), shuffle_)) {
    const auto b = static_cast<std::size_t>(batch);
    result.order.insert(result.order.end(), pairs_.begin() + (b == 0 ? 0 : ends_[b - 1]), pairs_.begin() + ends_[b]);
    result.ends.push_back(std::ssize(result.order));
  }
  return result;
}

}  // namespace etc::data
