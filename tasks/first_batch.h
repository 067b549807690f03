// A task that sets some of its model's fresh weights by what the training data do to them.
#pragma once

#include <string>

#include "tasks/task.h"

namespace etc {

class SetsWeightsFromData {
 public:
  virtual ~SetsWeightsFromData() = default;

  // Called once in a run that begins with fresh weights, before its first step, with the batch's first micro-batch and the
  // options of that step. Other processes take over the weights of the first one. Returns what it did, for the log; "":
  // nothing.
  virtual std::string set_weights(Encoder& encoder, Examples examples, const EncoderInput& input,
                                  const ForwardOptions& options) const = 0;
};

}  // namespace etc
