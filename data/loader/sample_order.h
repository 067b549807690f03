// Which example each sample of a run is, and where batches end: by a number of examples or by a budget of tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loader/order.h"
#include "data/loader/token_batches.h"

namespace etc::data {

// A function of data set and options alone, whatever was asked before, so any position can be resumed. Epoch e of n examples
// owns ordinals e·n … e·n+n-1, in batches of batch_examples (batch_at) or, with batch_tokens, in those of TokenBatches, which
// end with their epoch: its sources are long tokens, its targets global ones.
class SampleOrder {
 public:
  // Throws Error naming an example that alone exceeds batch_tokens.
  SampleOrder(const DatasetReader& reader, const LoaderOptions& options);

  // Long plus global tokens of every example.
  const std::vector<std::int64_t>& tokens() const { return tokens_; }

  std::int64_t index_of(std::int64_t ordinal);
  // The batch that starts at ordinal `start` (batch_at); none: the run is over.
  std::optional<SampleRange> batch_at(std::int64_t start);
  std::int64_t batches_per_epoch() const;  // that start in an epoch, at most

 private:
  void take_epoch(std::int64_t epoch);

  LoaderOptions options_;
  std::int64_t examples_;
  std::vector<std::int64_t> tokens_;
  std::optional<TokenBatches> by_tokens_;
  std::int64_t epoch_ = -1;  // of what follows
  std::vector<std::int64_t> order_, ends_;
};

}  // namespace etc::data
