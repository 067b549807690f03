// The ETC encoder with RealFormer residual scores: embeddings, then layers of global-local attention and feed-forward.
//
// Sources: ETC (Ainslie et al. 2020, section 3), RealFormer (He et al. 2021, section 3); formulas in etc-core 3-7, 9.
#pragma once

#include <memory>

#include "etc_core/nn/encoder.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"

namespace etc {

class EtcEncoder final : public Encoder {
 public:
  // Adds the encoder's parameters to the set under their names of etc-core 12.2. Validates the configuration.
  EtcEncoder(const EtcConfig& config, ParameterSet& parameters);
  ~EtcEncoder() override;

  const EtcConfig& config() const override;

  // Errors: as in input_checks.h; also token ids outside the vocabulary and labels >= R, which are detected where they
  // are used.
  EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) override;

 private:
  void release(InferenceTypes types) override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc
