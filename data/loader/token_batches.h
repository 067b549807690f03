// Batches of sentence pairs by a budget of tokens (translation 5).
//
// Which pairs make a batch is decided once, from lengths and a seed: pairs of like lengths go together. Epochs only
// change the order of the batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etc::data {

struct TokenBudget {
  std::int64_t tokens = 4096;
  // false: a batch holds pairs of Σ (S + T) <= tokens, what a ragged engine computes with. true: of count · longest <=
  // tokens, where longest is the largest max(S, T), what a padded one would.
  bool padded = false;
  // padded: a full batch of c pairs keeps max(multiple·⌊c / multiple⌋, c mod multiple), the others begin the next one.
  std::int64_t multiple = 8;
};

class TokenBatches {
 public:
  // Lengths of every pair with </s>. Pairs are permuted by the seed (unless not shuffled), sorted by target length, then
  // by source length, both stably, and fill batches in that order. Throws Error naming a pair that alone exceeds the
  // budget. Where the pairs kept back and the next one exceed it together they are closed, too; the published rule lets
  // such a batch exceed it. Time: n·log n.
  TokenBatches(std::span<const std::int64_t> sources, std::span<const std::int64_t> targets, const TokenBudget& budget,
               std::uint64_t seed, bool shuffle);

  std::int64_t size() const { return std::ssize(ends_); }

  struct Epoch {
    std::vector<std::int64_t> order;  // of the pairs
    std::vector<std::int64_t> ends;   // of the batches in it
  };
  // The batches of one epoch, shuffled by (seed, epoch). Each pair appears once.
  Epoch epoch(std::int64_t epoch) const;

 private:
  std::vector<std::int64_t> pairs_, ends_;  // batch b: pairs_[ends_[b - 1]] … pairs_[ends_[b] - 1]
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace etc::data
