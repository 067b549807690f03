// The run of a language model's preparation: all texts in order.
#pragma once

#include "tasks/prepare/run.h"

namespace etc::lm {

class LmPreparation;

// Converts options.inputs line by line into segments of texts, under the contract of prepare::run. Memory does not grow with
// the size of the texts.
prepare::Counts run_texts(const LmPreparation& preparation, const prepare::RunOptions& options);

}  // namespace etc::lm
