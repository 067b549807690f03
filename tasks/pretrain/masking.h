// Which pieces a masked language model is to predict, what it sees in their place, and which sentences contrastive
// predictive coding hides (pretraining 1.3, 2.3).
//
// One function for masks drawn once, when the data are prepared, and for masks drawn afresh in every epoch:
//   CounterDraws draws(draws_key(seed, copy or epoch, example));
//   const Masks masks = draw_masks(text, rules, draws);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/pretrain/draws.h"

namespace etc::pretrain {

struct MaskRules {
  double masked_lm_prob = 0.15;
  std::int64_t max_predictions = 20;  // positions at most
  bool whole_words = false;           // a word's pieces are predicted all or none
  double cpc_sentence_prob = 0.15;
  std::int64_t mask_id = 0;     // of [MASK]
  std::int64_t vocab_size = 0;  // a random piece is any of 0 … vocab_size−1, special ones included
};

// An example as schema.h describes it.
struct MaskableText {
  std::span<const std::int64_t> ids;               // [n]
  std::span<const std::int64_t> kinds;             // [n] PieceKind
  std::span<const std::int64_t> sentence_lengths;  // [S] of all but the first id; empty: no contrastive coding
};

struct Masks {
  std::vector<std::int64_t> positions;      // [p] strictly increasing; labels are the ids there
  std::vector<std::int64_t> input_ids;      // [p] what stands there instead
  std::vector<std::int64_t> cpc_sentences;  // [m] strictly increasing
};

// min(most, max(1, round(count · probability))), round half to even (1.3, step 3). most >= 1.
std::int64_t number_to_mask(std::int64_t count, double probability, std::int64_t most);

// Draws, in this order: the sentences of CPC (an order of S, as many entries as are chosen), an order of the groups, and
// for each position of a chosen group, as the groups come, what replaces it.
//
// Without sentences the count is of all n ids (1.3). With them (2.3) max(1, round(prob · S)) sentences are chosen, at
// most S − 1 and none of a single one, and the count is of the other sentences' pieces; no piece of a chosen sentence
// is predicted. A group of more pieces than are still wanted is left out, and the walk goes on.
Masks draw_masks(const MaskableText& text, const MaskRules& rules, Draws& draws);

}  // namespace etc::pretrain
