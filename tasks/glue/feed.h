// Rows of GLUE data sets as encoder input.
#pragma once

#include <string>

#include "tasks/feed/sequence.h"
#include "tasks/glue/data_sets.h"
#include "tasks/task.h"

namespace etc::glue {

// Throws Error (its form is in features.h) when the features contradict each other, the model or the data set.
void check_example(const data::Example& example, const EncoderConfig& model, DataSet set, const std::string& where);

// Long input: the row. Global tokens of an ETC: a copy of CLS, then one per block of the other tokens.
EncoderInput feed(Examples examples, const EncoderConfig& model, DataSet set, const feed::SequenceGlobals& globals,
                  const std::string& where);

}  // namespace etc::glue
