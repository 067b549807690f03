// What a batch of pre-training examples asks, and where the answers stand in the encoder's states. All functions take
// examples that check_example (feed.h) has let through.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/pretrain/masking.h"
#include "tasks/pretrain/options.h"
#include "tasks/task.h"

namespace etc::pretrain {

// The vocabulary as masks need it.
struct Pieces {
  std::int64_t mask_id = 0;     // of [MASK]
  std::int64_t vocab_size = 0;  // a random piece is one of so many
};

// The masks of an example: those stored with it or, where there are none, masks drawn for this epoch. These depend on
// (masking_seed, epoch, the example's id and record) alone: not on batch, order or thread count. Sentences are chosen
// for mlm_cpc only.
Masks masks_of(const data::LoadedExample& loaded, const Options& options, const Pieces& pieces);

// The batch the encoder gets: the examples, their masks applied, and behind them for mlm_cpc every chosen sentence as an
// example of its own, unmasked, with one global token and without [CLS] (pretraining 2.4).
struct Batch {
  std::vector<Masks> masks;  // of each example

  std::vector<std::int64_t> masked_rows;     // [P] the positions to be predicted among all long tokens
  std::vector<std::int32_t> labels;          // [P] the pieces there
  std::vector<std::int64_t> first_rows;      // [B] the first token of each example
  std::vector<std::int64_t> predicted_rows;  // [m] global tokens of the chosen sentences in their texts
  std::vector<std::int64_t> target_rows;     // [m] and alone
};
Batch batch_of(Examples examples, const Options& options, const Pieces& pieces);

// Position of the first piece of each sentence, and of the end of the last: [S+1]. The first token is [CLS].
std::vector<std::int64_t> sentence_begins(const data::Example& example);

}  // namespace etc::pretrain
