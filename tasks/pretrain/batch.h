// The predictions that a batch of pre-training examples asks for, and the rows of the encoder's states that they are made
// from. All functions need examples that check_example (feed.h) has accepted.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/pretrain/masking.h"
#include "tasks/pretrain/options.h"
#include "tasks/task.h"

namespace etc::pretrain {

// The properties of the vocabulary that masks need.
struct Pieces {
  std::int64_t mask_id = 0;     // of [MASK]
  std::int64_t vocab_size = 0;  // number of pieces that a random replacement is drawn from
};

// The masks of an example: those stored with it or, if there are none, masks drawn for this epoch. The latter are a function
// of (masking_seed, epoch, the example's id and record) alone, not of batch, order or thread count; their settings are those
// of mask_settings.h. Sentences are chosen for mlm_cpc only.
Masks masks_of(const data::LoadedExample& loaded, const Options& options, const Pieces& pieces);

// The encoder's batch: the examples with their masks applied, followed for mlm_cpc by every chosen sentence as a separate
// example, unmasked, with one global token and without [CLS] (pretraining 2.4).
struct Batch {
  std::vector<Masks> masks;  // of each example

  std::vector<std::int64_t> masked_rows;     // [P] rows of the positions to be predicted, among all long tokens
  std::vector<std::int32_t> labels;          // [P] the original pieces at these positions
  std::vector<std::int64_t> first_rows;      // [B] the first token of each example
  std::vector<std::int64_t> predicted_rows;  // [m] global tokens of the chosen sentences in their texts
  std::vector<std::int64_t> target_rows;     // [m] global tokens of the same sentences as separate examples
};
Batch batch_of(Examples examples, const Options& options, const Pieces& pieces);

// Position of the first piece of each sentence, and of the end of the last: [S+1]. The first token is [CLS].
std::vector<std::int64_t> sentence_begins(const data::Example& example);

}  // namespace etc::pretrain
