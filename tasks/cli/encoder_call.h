// One call of a randomly initialised model on random tokens: measured and forecast by `etc benchmark`.
#pragma once

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

// infer: a forward pass. train: forward, backward, one AdamW update. For an encoder-decoder: encoder and decoder, which
// reads a target with as many tokens as the source, and the loss over the vocabulary.
class EncoderCall {
 public:
  // Parameters have no values yet.
  EncoderCall(const EncoderConfig& model, CallMode mode, InferenceTypes types);

  // Call before run(); device: the one that computes.
  void initialize(Device device);
  void run(const EncoderInput& input);

  // Within count_memory() and instead of initialize(): the ledger's peak is that of a call after a first one, and the
  // returned work per operator (without times) is that of the same call. Uses the profiler.
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
  std::unique_ptr<Seq2SeqDecoder> decoder_;  // only for an encoder-decoder
  Optimizer optimizer_;
};

// CPU time of all threads of this process.
double processor_seconds();

}  // namespace etc::cli
