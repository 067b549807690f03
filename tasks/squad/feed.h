// Windows of SQuAD questions as encoder input.
#pragma once

#include <string>

#include "tasks/feed/sequence.h"
#include "tasks/task.h"

namespace etc::squad {

// Throws Error (its form is in features.h) when the features contradict each other or the model.
void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where);

// Long input: the window. Global tokens of an ETC: copies of CLS, question and SEP, then one per block of the text, so that
// every token sees the whole question (globals.copied is set here).
EncoderInput feed(Examples examples, const EncoderConfig& model, const feed::SequenceGlobals& globals,
                  const std::string& where);

}  // namespace etc::squad
