// Broadcasts what the first process read from a run's folder or a checkpoint, so that the other processes need no such
// folder. Collective calls.
#pragma once

#include <map>
#include <string>

#include "etc_core/comm/communicator.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/tensor/tensor.h"
#include "tasks/task.h"

namespace etc {

// Values are on the host; all processes have the same parameters.
void share_parameters(Communicator& processes, ParameterSet& parameters);

// The first process's tensors, by name.
std::map<std::string, Tensor> share_tensors(Communicator& processes, std::map<std::string, Tensor> tensors,
                                            Purpose purpose);

// The first process's results.
Metrics share_metrics(Communicator& processes, const Metrics& own);

}  // namespace etc
