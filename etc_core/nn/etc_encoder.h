// The ETC encoder with RealFormer residual scores: embeddings, then layers of global-local attention and feed-forward.
//
// Sources: ETC (Ainslie et al. 2020, section 3), RealFormer (He et al. 2021, section 3); formulas in etc-core 3-7, 9.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "etc_core/autograd/tape.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"

namespace etc {

struct EncoderStates {
  Var long_states;    // [T, H]
  Var global_states;  // [U, H]
};

// Running scores C in the external form; types that carry no scores are undefined. l2l is [N, T, W]; the others are
// flat: per example [N, L, G], [N, G, G], [N, G, L], one example after the other.
struct ExternalScores {
  Tensor l2l, l2g, g2g, g2l;
};

// What happens in one call.
struct ForwardOptions {
  bool training = false;   // dropout acts (needs a tape that records; without it a recording tape has no dropout)
  std::uint64_t seed = 0;  // of the run's dropout
  // Of the encoder's products on a tape that records: fp32 or bf16 (base/compute_type.h says what is rounded). Another
  // tape has that of release_kernels().
  ComputeType compute = ComputeType::fp32;
  // Called after the embedding stage (layer -1) and after each layer, with numbers the host can read: long_states
  // [T, H], global_states [U, H]; scores only with residual attention. For `encode --all-layers` and tests; null costs
  // nothing.
  std::function<void(std::int64_t layer, const Tensor& long_states, const Tensor& global_states,
                     const ExternalScores& scores)>
      watch;
};

// It computes where its parameters are (ParameterSet::to); results lie there, too.
class EtcEncoder {
 public:
  // Adds the encoder's parameters to the set under their names of etc-core 12.2. Validates the configuration.
  EtcEncoder(const EtcConfig& config, ParameterSet& parameters);
  ~EtcEncoder();

  const EtcConfig& config() const;

  // Throws Error naming tensor, example, position and limit: token id outside the vocabulary, length beyond the
  // position table, offsets not monotone, lengths that differ, labels >= R, position ids without positions
  // (etc-core 2.2, 7-10).
  // The input need not outlive the call, except the adders' numbers, which the caller must not change before backward.
  EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options);

  // Packs all dense layers and gives the kernels' own memory back: halves the weights of a program that only runs the
  // model. Afterwards these parameters have no value: recording and saving are Errors until they are loaded anew.
  // compute: number type of dense products and, bf16 for int8 as well, of attention's; Error where not offered.
  void release_kernels(ComputeType compute = ComputeType::fp32);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Registers every CPU kernel the encoder needs (sparse and dense); call once at program start.
void register_cpu_backend();

}  // namespace etc
