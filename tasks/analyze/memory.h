// Forecast of the memory of an analysis.
#pragma once

#include <cstdint>

#include "tasks/analyze/model_analysis.h"
#include "tasks/train/fed_encoder.h"

namespace etc::analyze {

struct ExpectedMemory {
  std::int64_t peak = 0;     // of the process, in bytes
  std::int64_t results = 0;  // the part that is still held while other models are analysed
};

// For request.micro_batch_tokens at a time. Call it before the model's weights are loaded.
ExpectedMemory expected_memory(const FedEncoder& fed, const AnalysisRequest& request);

// The largest number of tokens at a time, up to request.micro_batch_tokens, with which the process stays below
// request.memory_limit; 1: one example at a time. When an example does not fit, throws Error with the longest that does.
std::int64_t fitting_tokens(const FedEncoder& fed, const AnalysisRequest& request);

}  // namespace etc::analyze
