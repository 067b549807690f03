// Draws the pieces that a masked language model has to predict, their replacements in its input, and the sentences that
// contrastive predictive coding hides (pretraining 1.3, 2.3).
//
// The same function draws masks once, when the data are prepared, and anew in every epoch:
//   CounterDraws draws(draws_key(seed, copy or epoch, example));
//   const Masks masks = draw_masks(text, rules, draws);
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tasks/pretrain/draws.h"

namespace etc::pretrain {

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

struct MaskRules {
  double masked_lm_prob = 0.15;
  std::int64_t max_predictions = kNoLimit;  // maximum number of positions; CPC has no such limit (2.3)
  bool whole_words = false;                 // either all or none of a word's pieces are predicted
  double cpc_sentence_prob = 0.15;
  std::int64_t mask_id = 0;     // of [MASK]
  std::int64_t vocab_size = 0;  // a random piece is any of 0 … vocab_size−1, including special ones
};

// An example as schema.h describes it.
struct MaskableText {
  std::span<const std::int64_t> ids;               // [n]
  std::span<const std::int64_t> kinds;             // [n] PieceKind
  std::span<const std::int64_t> sentence_lengths;  // [S] of all but the first id; empty: no contrastive coding
};

struct Masks {
  std::vector<std::int64_t> positions;      // [p] strictly increasing; labels are the original ids at these positions
  std::vector<std::int64_t> input_ids;      // [p] the ids that replace them in the input
  std::vector<std::int64_t> cpc_sentences;  // [m] strictly increasing
};

// min(most, max(1, round(count · probability))), round half to even (1.3, step 3). most >= 1.
std::int64_t number_to_mask(std::int64_t count, double probability, std::int64_t most);

// Draws, in this order: the sentences of CPC (a random order of S, as many entries as are chosen), an order of the groups,
// and the replacement of each position of the chosen groups, in the order of the groups.
//
// Without sentences, number_to_mask is applied to all n ids (1.3). With sentences (2.3), max(1, round(prob · S)) of them are
// chosen, at most S − 1 and none if there is only one; number_to_mask is applied to the pieces of the other sentences, and
// no piece of a chosen sentence is predicted. A group with more pieces than still needed is skipped.
Masks draw_masks(const MaskableText& text, const MaskRules& rules, Draws& draws);

}  // namespace etc::pretrain
