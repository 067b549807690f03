// Special tokens of pre-training; in SentencePiece models they have BERT's names (pretraining 1.1).
#pragma once

#include "tasks/text/special_pieces.h"

namespace etc::pretrain {

inline constexpr text::SpecialPiece kCls{"[CLS]", "[CLS]", "<s>", text::kEndOfText};
inline constexpr text::SpecialPiece kSep{"[SEP]", "[SEP]", "</s>", text::kEndOfText};
inline constexpr text::SpecialPiece kMask{"[MASK]", "[MASK]", "<mask>"};

}  // namespace etc::pretrain
