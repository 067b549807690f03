#include "data/loader/sample_order.h"

#include <algorithm>
#include <utility>

namespace etc::data {

SampleOrder::SampleOrder(const DatasetReader& reader, const LoaderOptions& options)
    : options_(options), examples_(reader.size()), tokens_(token_counts(reader)) {
  if (options.batch_tokens == 0) return;
  const std::vector<std::int64_t> targets = global_token_counts(reader);
  std::vector<std::int64_t> sources = tokens_;
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] -= targets[i];
  const TokenBudget budget{.tokens = options.batch_tokens, .padded = options.padded_batches};
  by_tokens_.emplace(sources, targets, budget, options.seed, options.shuffle);
}

void SampleOrder::take_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return;
  order_ = {};  // frees the old order before the new one is built
  if (by_tokens_) {
    TokenBatches::Epoch own = by_tokens_->epoch(epoch);
    order_ = std::move(own.order);
    ends_ = std::move(own.ends);
  } else {
    order_ = epoch_order(examples_, epoch, options_);
  }
  epoch_ = epoch;
}

std::int64_t SampleOrder::index_of(std::int64_t ordinal) {
  take_epoch(ordinal / examples_);
  return order_[static_cast<std::size_t>(ordinal % examples_)];
}

std::optional<SampleRange> SampleOrder::batch_at(std::int64_t start) {
  if (!by_tokens_) return data::batch_at(start, examples_, options_);
  const std::int64_t epoch = start / examples_;
  if (options_.epochs > 0 && epoch >= options_.epochs) return std::nullopt;
  take_epoch(epoch);
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), start % examples_);
  return SampleRange{start, epoch * examples_ + *end};
}

std::int64_t SampleOrder::batches_per_epoch() const {
  if (by_tokens_) return by_tokens_->size();
  const std::int64_t size = options_.batch_examples;
  return examples_ / size + (examples_ % size != 0 ? 1 : 0);
}

}  // namespace etc::data
