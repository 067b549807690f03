#include "tasks/pretrain/batch.h"

#include "etc_core/base/crc32c.h"
#include "tasks/feed/features.h"
#include "tasks/pretrain/mask_settings.h"

namespace etc::pretrain {

using feed::Numbers;
using feed::numbers;

namespace {

Masks drawn(const data::LoadedExample& loaded, const Options& options, const Pieces& pieces) {
  const data::Example& example = loaded.features;
  MaskRules rules = rules_of(example, options);
  rules.mask_id = pieces.mask_id;
  rules.vocab_size = pieces.vocab_size;
  MaskableText text{numbers(example, "long_token_ids"), numbers(example, "piece_kinds"), {}};
  if (options.cpc()) text.sentence_lengths = numbers(example, "sentence_lengths");
  const auto record = static_cast<std::uint64_t>(feed::number(example, "record_index"));
  CounterDraws draws(draws_key(options.masking_seed, static_cast<std::uint64_t>(loaded.epoch),
                               record << 32 ^ crc32c(feed::text(example, "id"))));
  return draw_masks(text, rules, draws);
}

}  // namespace

Masks masks_of(const data::LoadedExample& loaded, const Options& options, const Pieces& pieces) {
  const data::Example& example = loaded.features;
  const Numbers &positions = numbers(example, "masked_positions"), &chosen = numbers(example, "cpc_sentences");
  if (positions.empty() && chosen.empty()) return drawn(loaded, options, pieces);
  Masks masks{positions, numbers(example, "masked_input_ids"), {}};
  if (options.cpc()) masks.cpc_sentences = chosen;
  return masks;
}

std::vector<std::int64_t> sentence_begins(const data::Example& example) {
  std::vector<std::int64_t> begins = {1};
  for (const std::int64_t length : numbers(example, "sentence_lengths")) begins.push_back(begins.back() + length);
  return begins;
}

Batch batch_of(Examples examples, const Options& options, const Pieces& pieces) {
  Batch batch;
  std::int64_t longs = 0, globals = 0;  // tokens so far
  for (const data::LoadedExample& loaded : examples) {
    const Masks& masks = batch.masks.emplace_back(masks_of(loaded, options, pieces));
    const Numbers& ids = numbers(loaded.features, "long_token_ids");
    batch.first_rows.push_back(longs);
    for (const std::int64_t position : masks.positions) {
      batch.masked_rows.push_back(longs + position);
      batch.labels.push_back(static_cast<std::int32_t>(ids[static_cast<std::size_t>(position)]));
    }
    for (const std::int64_t sentence : masks.cpc_sentences) batch.predicted_rows.push_back(globals + sentence);
    longs += std::ssize(ids);
    globals += std::ssize(numbers(loaded.features, "sentence_lengths"));
  }
  // After the texts' global tokens, one for each sentence that is a separate example, in the same order.
  for (std::size_t i = 0; i < batch.predicted_rows.size(); ++i) {
    batch.target_rows.push_back(globals + static_cast<std::int64_t>(i));
  }
  return batch;
}

}  // namespace etc::pretrain
