// Expected peak memory of a run by purpose, before it starts.
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/memory_ledger.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/optim/accumulator.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_config.h"

namespace etc {

// What the optimiser keeps beside each parameter that has a gradient, without values: two moments.
std::vector<Tensor> moments_without_values(const ParameterSet& parameters);

// The ledger's peak of training with these data, and of the evaluations between the steps when there are evaluation
// data. Looks at the lengths of every micro-batch of the run and counts (nn/count_memory.h) the heaviest ones with
// everything that is held beside them. steps: of the whole run. What config computes in is settled (plan.h).
MemoryReport forecast_training(const RunConfig& config, const RunData& data, std::int64_t steps);

// So with this example alone as every batch.
MemoryReport forecast_single_example(const RunConfig& config, const RunData& data, std::int64_t index);

// What the process holds now beside the ledger's large buffers: program, libraries, stacks, small objects.
std::int64_t bytes_outside_ledger();

// "1.2 GB: weights 0.1, gradients 0.1, …": what is not zero, in the order of the purposes.
std::string memory_text(const MemoryReport& peak);

}  // namespace etc
