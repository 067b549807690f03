// Expected peak memory of a process that trains or predicts, before it starts.
//
// Two parts. Buffers are counted by the program's own code (nn/count_memory.h). What is beside them is measured at the
// moment of the forecast, when the data are open, and what is known to come later is added: code that has not run yet
// and the threads' stacks and small working memory (bytes_of_computing), batches read ahead and the loader's index
// (add_reading). bench/RESULTS.md, "What the process takes", compares with the kernel's figure.
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/process_memory.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/optim/accumulator.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_config.h"

namespace etc {

// What the optimiser keeps beside each parameter that has a gradient, without values: two moments.
std::vector<Tensor> moments_without_values(const ParameterSet& parameters);

// The peak of training with these data, and of the evaluations between the steps when there are evaluation data. Looks
// at the lengths of every micro-batch of the run and counts the heaviest ones with everything that is held beside them.
// steps: of the whole run. What config computes in is settled (plan.h). On another device than the host, buffers alone.
// processes: that share each batch; the peak is that of the one that holds most.
ProcessMemory forecast_training(const RunConfig& config, const RunData& data, Device device, std::int64_t steps,
                                int processes = 1);

// Says in the log what the run is expected to take, and warns where the machine has less.
void log_forecast(const RunConfig& config, const RunData& data, Device device, std::int64_t steps, int processes);

// So with this example alone as every batch.
ProcessMemory forecast_single_example(const RunConfig& config, const RunData& data, Device device, std::int64_t index);

// What a process that has not computed yet will hold beside its buffers once it has.
std::int64_t bytes_of_computing();

// Adds what reading these data in this order takes. some: examples as they are handed out.
void add_reading(ProcessMemory& memory, const data::DatasetReader& reader, const data::LoaderOptions& order,
                 const std::vector<std::vector<data::LoadedExample>>& some);

}  // namespace etc
