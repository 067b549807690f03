// One call of a freshly drawn model on random tokens: what `etc benchmark` measures and forecasts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/profiler.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/random_input.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "etc_core/optim/optimizer.h"

namespace etc::cli {

enum class CallMode { infer, train };

// infer: a forward pass. train: forward, backward, one AdamW update. Of an encoder-decoder, encoder and decoder, which
// reads a target of as many tokens as the source has, with the loss over the vocabulary.
class EncoderCall {
 public:
  // Parameters have no values yet.
  EncoderCall(const EncoderConfig& model, CallMode mode, InferenceTypes types);

  // Before run(); device: where it computes.
  void initialize(Device device);
  void run(const EncoderInput& input);

  // Within count_memory() and in the place of initialize(): the ledger's peak is that of one call after a first one,
  // and so is the work returned, per operator and without times. Takes the profiler.
  std::vector<profiler::Row> count(const EncoderInput& input);

 private:
  void forward_backward(const EncoderInput& input);
  void decode(Tape& tape, const EncoderInput& input, const Var& states, const ForwardOptions& options);
  void release();
  double gradient_numbers() const;

  CallMode mode_;
  InferenceTypes types_;
  ParameterSet parameters_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Seq2SeqDecoder> decoder_;  // of an encoder-decoder
  Optimizer optimizer_;
};

// Of all threads of this process.
double processor_seconds();

}  // namespace etc::cli
