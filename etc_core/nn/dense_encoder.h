// A dense encoder: embeddings, then attention and feed-forward sub-layers in the configuration's order, with or without
// running scores (dense-transformer 1; BERT, Devlin et al. 2019; RealFormer, He et al. 2021; sandwich, Press et al.
// 2020). Parameters are named as BERT's TensorFlow variables (etc-core 12.3).
#pragma once

#include <memory>

#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/parameters.h"

namespace etc {

class DenseEncoder final : public Encoder {
 public:
  DenseEncoder(const DenseConfig& config, ParameterSet& parameters);
  ~DenseEncoder() override;

  const DenseConfig& config() const override;

  // Reads the input's long tokens; missing segment ids are 0. labels.l2l may say which tokens see which, by distance
  // within the radius (length of the longest example minus 1 if local_radius is 0). With memory_length the states
  // include the memory for the next segment's input. Throws Error on global tokens.
  EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) override;

  // The sub-layers alone, applied to the output of an embedding stage: x [T, H] → [T, H]. For tests against published
  // layers.
  Var forward_layers(Tape& tape, Var x, const EncoderInput& input, const ForwardOptions& options);

 private:
  void release(InferenceTypes types) override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc
