// Forecast of the memory of an analysis.
#pragma once

#include <cstdint>

#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

struct ExpectedMemory {
  std::int64_t peak = 0;     // of the process, in bytes
  std::int64_t results = 0;  // the part that is still held while other models are analysed
};

// The memory of an opened analysis beside the results of earlier ones, `held` bytes. With request.memory_limit, sets
// request.micro_batch_tokens to the largest number, up to its own, with which the process stays below the limit (1: one
// example at a time). When an example does not fit, throws Error with the longest that does.
ExpectedMemory fit_memory(OpenedAnalysis& opened, std::int64_t held);

}  // namespace etc::analyze
