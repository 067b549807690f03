// One prediction as readable text.
#pragma once

#include <span>
#include <string>

#include "data/dataset.h"
#include "etc_core/base/json_fwd.h"

namespace etc::wikihop {

// Query, the likeliest candidates with their probabilities, whether the choice is right (where the answer is known),
// and the passages of the record's documents that mention it, the mention in [[double brackets]].
//   logits [C]
std::string shown_prediction(const Json& raw_record, const data::Example& example, std::span<const float> logits);

}  // namespace etc::wikihop
