// Finds the first fault of a step whose loss or gradient is not finite.
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

// The computation to repeat: forward and backward pass of one micro-batch, on this tape.
using MicroBatchPass = std::function<void(Examples examples, Tape& tape)>;

// Throws Diverged naming the first parameter with a value that is not finite: an update may overflow, or divide by
// zero, although loss and gradient are finite. Called before a checkpoint is replaced. All processes have the same
// weights, and so the same fault.
void require_sound_weights(const ParameterSet& parameters, std::int64_t step);

// The same check for the rest of a checkpoint, which only the first process has: moments, memory of streams. A
// collective call.
void require_sound_tensors(Communicator& processes, const std::map<std::string, Tensor>& tensors, std::int64_t step);

// Recomputes the step's micro-batches on tapes that check every result, and throws Diverged in every process: "train:
// <what> at step <step>; <the first bad weight or operator, of the lowest rank that found one>". A collective call;
// batch: this process's share. Drops the gradients of the parameters.
[[noreturn]] void throw_first_fault(Communicator& processes, ParameterSet& parameters, const data::LoadedBatch& batch,
                                    const MicroBatchPass& pass, std::int64_t step, const std::string& what);

}  // namespace etc
