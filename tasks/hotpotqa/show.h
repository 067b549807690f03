// A prediction as readable text (etc predict --show).
#pragma once

#include <string>

#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/decode.h"

namespace etc::hotpotqa {

// The question; the probabilities of the answer types; the answer and, if gold is known, whether it is right; the predicted
// and the gold supporting facts with their probabilities, and with the answer in brackets where they contain it.
std::string shown_prediction(const data::Example& example, const Logits& logits, const data::Tokenizer& tokenizer,
                             const DecodeOptions& options);

}  // namespace etc::hotpotqa
