// A prediction for people (etc predict --show).
#pragma once

#include <string>

#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/decode.h"

namespace etc::hotpotqa {

// Question, probabilities of the answer types, the answer with its judgement where gold is known, and the predicted and
// the gold supporting facts with their probabilities, the answer in brackets where it stands in one of them.
std::string shown_prediction(const data::Example& example, const Logits& logits, const data::Tokenizer& tokenizer,
                             const DecodeOptions& options);

}  // namespace etc::hotpotqa
