// Interface of a task that initialises some of its model's fresh weights from the training data.
#pragma once

#include <string>

#include "tasks/task.h"

namespace etc {

class SetsWeightsFromData {
 public:
  virtual ~SetsWeightsFromData() = default;

  // Called once in a run that begins with fresh weights, before its first step, with the batch's first micro-batch and
  // the options of that step. The other processes receive the weights of the first one. Returns a description of what
  // was done, for the log; "": nothing.
  virtual std::string set_weights(Encoder& encoder, Examples examples, const EncoderInput& input,
                                  const ForwardOptions& options) const = 0;
};

}  // namespace etc
