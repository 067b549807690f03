// The features of a prepared HotpotQA data set (task-hotpotqa 8.3, 8.4).
#pragma once

#include "data/dataset.h"

namespace etc::hotpotqa {

// With a SentencePiece vocabulary there are no unigrams: long_tokens_to_unigrams is an empty list, which is not stored.
const data::Schema& schema();

// Bits of the feature `flags` (task-hotpotqa 8.3, 8.4).
enum Flag : std::uint32_t {
  kLongCut = 1u << 0,            // text skipped for the long limit
  kGlobalCut = 1u << 1,          // text skipped for the global limit
  kLabelMissing = 1u << 2,       // no answer or no supporting facts
  kWarned = 1u << 3,             // the record raised a warning
  kLabelUnusable = 1u << 4,      // kept for prediction
  kFactCutAway = 1u << 5,        // a sentence that is a supporting fact was skipped
  kFactOutOfRange = 1u << 6,     // a fact cites a sentence that the paragraph does not have
  kFactTitleUnknown = 1u << 7,   // a fact cites a title that the context does not have
  kAnswerInCutText = 1u << 8,    // the answer label lies in skipped text
  kYesNoSubstringHit = 1u << 9,  // the span label of a yes/no question is an occurrence of the letters in the text
};

}  // namespace etc::hotpotqa
