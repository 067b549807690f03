// One window's prediction as readable text.
#pragma once

#include <string>

#include "tasks/nq/decode.h"
#include "tasks/task.h"

namespace etc::nq {

// Question, answer type and the two answers in the document's words, as this window alone would give them.
// raw_record: original or simplified.
std::string shown_prediction(const Json& raw_record, const data::Example& example, const HeadOutput& logits,
                             const DecodeOptions& options);

}  // namespace etc::nq
