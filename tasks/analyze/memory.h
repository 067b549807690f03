// What an analysis takes of memory, before it starts.
#pragma once

#include <cstdint>

#include "tasks/analyze/model_analysis.h"
#include "tasks/train/fed_encoder.h"

namespace etc::analyze {

struct ExpectedMemory {
  std::int64_t peak = 0;     // of the process, in bytes
  std::int64_t results = 0;  // of it what stays while other models are looked at
};

// With request.micro_batch_tokens at a time. The model's weights are not loaded yet.
ExpectedMemory expected_memory(const FedEncoder& fed, const AnalysisRequest& request);

// The most tokens at a time, up to request.micro_batch_tokens, with which the process stays below request.memory_limit;
// 1: one example at a time. Throws Error, telling the longest example that does, when not all examples fit.
std::int64_t fitting_tokens(const FedEncoder& fed, const AnalysisRequest& request);

}  // namespace etc::analyze
