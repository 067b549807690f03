// One page's prediction as readable text.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/openkp/classes.h"
#include "tasks/openkp/decode.h"

namespace etc::openkp {

// The url; the predicted phrases with their probabilities, whether they are key phrases (if these are known), and the
// context of each phrase's first occurrence with the phrase in [[double brackets]]; the key phrases that were not found.
std::string shown_prediction(const data::Example& example, const PhraseClasses& classes,
                             const std::vector<ScoredPhrase>& phrases);

}  // namespace etc::openkp
