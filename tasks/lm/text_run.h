// The run of a language model's preparation: all texts from front to back.
#pragma once

#include "tasks/prepare/run.h"

namespace etc::lm {

class LmPreparation;

// options.inputs line by line into segments of texts. Keeps the promises of prepare::run. Memory: flat in the size of the
// texts.
prepare::Counts run_texts(const LmPreparation& preparation, const prepare::RunOptions& options);

}  // namespace etc::lm
