// Rows of GLUE data sets as encoder input.
#pragma once

#include <string>

#include "tasks/feed/sequence.h"
#include "tasks/glue/data_sets.h"
#include "tasks/task.h"

namespace etc::glue {

// Throws Error (features.h says its form) when the features contradict each other, the model or the data set.
void check_example(const data::Example& example, const EncoderConfig& model, DataSet set, const std::string& where);

// Long input: the row. An ETC's global tokens: a copy of CLS, then one per block of the others.
EncoderInput feed(Examples examples, const EncoderConfig& model, DataSet set, const feed::SequenceGlobals& globals,
                  const std::string& where);

}  // namespace etc::glue
