// The features of a prepared WikiHop data set (task-wikihop 8.3, 8.4).
#pragma once

#include "data/dataset.h"

namespace etc::wikihop {

const data::Schema& schema();

// Bits of the feature `flags` (task-wikihop 8.3, 8.4).
enum Flag : std::uint32_t {
  kLongCut = 1u << 0,             // text removed for the long limit
  kGlobalCut = 1u << 1,           // text removed for the global or sentence limit
  kLabelMissing = 1u << 2,        //
  kWarned = 1u << 3,              // the record raised a warning
  kLabelUnusable = 1u << 4,       // kept for prediction
  kEqualCandidates = 1u << 5,     // candidates equal after normalisation
  kEmptiedDocument = 1u << 6,     // a document lost all its sentences
  kAnswerNotMentioned = 1u << 7,  // no mention of the answer in the kept text
};

}  // namespace etc::wikihop
