// Batches of sentence pairs by a budget of tokens (translation 5).
//
// The batches are formed once, from lengths and a seed: pairs of similar lengths share a batch. Epochs only change the
// order of the batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etc::data {

struct TokenBudget {
  std::int64_t tokens = 4096;
  // false: a batch holds pairs with Σ (S + T) <= tokens, the tokens of a ragged engine. true: count · longest <=
  // tokens, where longest is the largest max(S, T): the tokens of a padded engine.
  bool padded = false;
  // padded: a full batch of c pairs keeps max(multiple·⌊c / multiple⌋, c mod multiple) of them; the others begin the
  // next one.
  std::int64_t multiple = 8;
};

class TokenBatches {
 public:
  // sources, targets: lengths of every pair, with </s>. Pairs are permuted by the seed (if shuffled), then stably
  // sorted by source length, with ties ordered by target length, and fill batches in that order. Throws Error naming a
  // pair that alone exceeds the budget. If the pairs kept back and the next pair together exceed the budget, the pairs
  // kept back become a batch as well; the published rule lets that batch exceed the budget. Time: n·log n.
  TokenBatches(std::span<const std::int64_t> sources, std::span<const std::int64_t> targets, const TokenBudget& budget,
               std::uint64_t seed, bool shuffle);

  std::int64_t size() const { return std::ssize(ends_); }

  struct Epoch {
    std::vector<std::int64_t> order;  // of the pairs
    std::vector<std::int64_t> ends;   // where each batch ends in `order`
  };
  // The batches of one epoch, shuffled by (seed, epoch). Each pair appears once.
  Epoch epoch(std::int64_t epoch) const;

 private:
  std::vector<std::int64_t> pairs_, ends_;  // batch b: pairs_[ends_[b - 1]] … pairs_[ends_[b] - 1]
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace etc::data
