// One call of a freshly drawn encoder on random tokens: what `etc benchmark` measures and forecasts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/profiler.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/optim/optimizer.h"

namespace etc::cli {

enum class CallMode { infer, train };

// infer: a forward pass. train: forward, backward, one AdamW update.
class EncoderCall {
 public:
  // Parameters have no values yet.
  EncoderCall(const EncoderConfig& model, CallMode mode, ComputeType compute)
      : mode_(mode), compute_(compute), encoder_(model.make_encoder(parameters_)), optimizer_({}) {}

  // Before run(); device: where it computes.
  void initialize(Device device);
  void run(const EncoderInput& input);

  // Within count_memory() and in the place of initialize(): the ledger's peak is that of one call after a first one,
  // and so is the work returned, per operator and without times. Takes the profiler.
  std::vector<profiler::Row> count(const EncoderInput& input);

 private:
  void forward_backward(const EncoderInput& input);
  double gradient_numbers() const;

  CallMode mode_;
  ComputeType compute_;
  ParameterSet parameters_;
  std::unique_ptr<Encoder> encoder_;
  Optimizer optimizer_;
};

// Of all threads of this process.
double processor_seconds();

}  // namespace etc::cli
