// One question's prediction as readable text.
#pragma once

#include <memory>
#include <string>

#include "tasks/squad/decode.h"
#include "tasks/task.h"

namespace etc::squad {

// The question and its best answers with their probabilities, computed from this window alone.
std::string shown_prediction(const Json& raw_record, const data::Example& example, const HeadOutput& logits,
                             const DecodeOptions& options, std::shared_ptr<const data::Tokenizer> tokenizer);

}  // namespace etc::squad
