// What went wrong first in a step whose loss or gradient is no number.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "data/loader/loader.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/base/error.h"
#include "etc_core/comm/communicator.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/tensor/tensor.h"
#include "tasks/task.h"

namespace etc {

// The loss, the gradient, the weights or the moments of a step are not finite. Says which operator was the first.
class Diverged : public Error {
 public:
  using Error::Error;
};

// What is to be computed once more: forward and backward pass of one micro-batch, on this tape.
using MicroBatchPass = std::function<void(Examples examples, Tape& tape)>;

// Throws Diverged naming the first parameter with a number that is not finite: an update may overflow, or divide by zero,
// though loss and gradient are numbers. Before weights replace a checkpoint's. All processes have the same weights, and so
// the same fault.
void require_sound_weights(const ParameterSet& parameters, std::int64_t step);

// The same of what else a checkpoint holds, which the first process has: moments, memory of streams. A call of all
// processes.
void require_sound_tensors(Communicator& processes, const std::map<std::string, Tensor>& tensors, std::int64_t step);

// Computes the step's micro-batches once more on tapes that look at every result, and throws Diverged in every process:
// "train: <what> at step <step>; <the first bad weight or operator, of the lowest rank that found one>". A call of all
// processes; batch: this one's share. Drops the gradients of the parameters.
[[noreturn]] void throw_first_fault(Communicator& processes, ParameterSet& parameters, const data::LoadedBatch& batch,
                                    const MicroBatchPass& pass, std::int64_t step, const std::string& what);

}  // namespace etc
