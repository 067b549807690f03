// Expected peak memory of a process that trains or predicts, before it starts.
//
// The forecast has two parts. Buffers are counted by the program's own code (nn/count_memory.h). Other memory is
// measured at the moment of the forecast, when the data are open, and known later additions are added: code that has
// not run yet, the threads' stacks and small working memory (bytes_of_computing), batches read ahead and the loader's
// index (add_reading). bench/RESULTS.md, "What the process takes", compares the forecast with the kernel's figure.
#pragma once

#include <vector>

#include "etc_core/base/process_memory.h"
#include "etc_core/nn/parameters.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_config.h"

namespace etc {

// Optimiser state of each parameter that has a gradient, without values: two moments.
std::vector<Tensor> moments_without_values(const ParameterSet& parameters);

// The peak of training with these data, including the evaluations between the steps when there are evaluation data.
// Reads the lengths of every micro-batch of the run and counts the heaviest ones with everything that is held beside
// them. steps: of the whole run. config.training.compute must be settled (plan.h). For devices other than the host,
// counts buffers only. processes: how many share each batch; the peak is that of the process that holds most.
ProcessMemory forecast_training(const RunConfig& config, const RunData& data, Device device, std::int64_t steps,
                                int processes = 1);

// Logs the expected memory of the run, and warns if the machine has less.
void log_forecast(const RunConfig& config, const RunData& data, Device device, std::int64_t steps, int processes);

// The same with this example alone as every batch.
ProcessMemory forecast_single_example(const RunConfig& config, const RunData& data, Device device, std::int64_t index);

// Memory beside the buffers that a process which has not computed yet will hold once it has.
std::int64_t bytes_of_computing();

// Adds the memory for reading these data in this order. some: examples as the loader returns them.
void add_reading(ProcessMemory& memory, const data::DatasetReader& reader, const data::LoaderOptions& order,
                 const std::vector<std::vector<data::LoadedExample>>& some);

}  // namespace etc
