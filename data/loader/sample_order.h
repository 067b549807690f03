// Which example each sample of a run is, and where batches end: by a number of examples or by a budget of tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loader/order.h"
#include "data/loader/token_batches.h"

namespace etc::data {

// Results depend on data set and options alone, not on earlier calls, so a run can resume at any position. Epoch e of n
// examples owns ordinals e·n … e·n+n-1, cut into batches of batch_examples (batch_at) or, with batch_tokens, into those
// of TokenBatches, which end with their epoch; its source lengths are the long tokens, its target lengths the global
// tokens.
class SampleOrder {
 public:
  // Throws Error naming an example that alone exceeds batch_tokens.
  SampleOrder(const DatasetReader& reader, const LoaderOptions& options);

  // Long plus global tokens of every example.
  const std::vector<std::int64_t>& tokens() const { return tokens_; }

  std::int64_t index_of(std::int64_t ordinal);
  // The batch that starts at ordinal `start` (batch_at); none: the run is over.
  std::optional<SampleRange> batch_at(std::int64_t start);
  std::int64_t batches_per_epoch() const;  // upper bound of those that start in an epoch

 private:
  void take_epoch(std::int64_t epoch);

  LoaderOptions options_;
  std::int64_t examples_;
  std::vector<std::int64_t> tokens_;
  std::optional<TokenBatches> by_tokens_;
  std::int64_t epoch_ = -1;  // the epoch that order_ and ends_ describe
  std::vector<std::int64_t> order_, ends_;
};

}  // namespace etc::data
