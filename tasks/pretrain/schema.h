// The features of a prepared pre-training data set (pretraining 1.4, 2.2, 2.3).
#pragma once

#include "data/dataset.h"

namespace etc::pretrain {

// One schema for all objectives; a feature that an objective does not use is an empty list or the missing value.
//
//   long_token_ids        [n]  the original pieces before masking, including [CLS] and [SEP]
//   piece_kinds           [n]  PieceKind of each; all kSpecial where static masks chose nothing, so that nothing is drawn
//                              while feeding either
//   first_segment_length  positions of segment 0 from the front: `[CLS] A [SEP]`; n without a second segment
//   next_sentence_label   0: B follows A, 1: B is random; missing: no B
//   masked_positions      [p]  strictly increasing positions whose piece is to be predicted; its label is the original.
//                              Static masks only: dynamic ones are drawn while feeding.
//   masked_input_ids      [p]  the input at these positions: [MASK], the original or a random entry (1.3)
//   sentence_lengths      [S]  pieces of each sentence, one global token each; empty: no sentences (mlm_nsp).
//                              Their sum is n − 1: the first long token is [CLS] (2.2)
//   cpc_sentences         [m]  strictly increasing indices of the sentences chosen for CPC; their pieces become [MASK]
//                              when the example is fed. Static masks only.
//   /preprocess_config    not stored with the example: the settings of the preparation, for masks that are drawn while
//                         feeding
const data::Schema& schema();

inline constexpr const char* kSettings = "/preprocess_config";

enum PieceKind : std::uint8_t {
  kContinues = 0,  // belongs to the group of the piece before it, for whole-word masks
  kBegins = 1,     // begins a group
  kSpecial = 2,    // [CLS], [SEP]: never masked
};

}  // namespace etc::pretrain
