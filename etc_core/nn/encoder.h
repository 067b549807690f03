// An encoder as trainer, tasks and tools see it: a ragged batch in, states of its tokens out.
//
// Long states there are always, global states where the encoder has global tokens. ETC (etc_encoder.h) is one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etc_core/autograd/tape.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"

namespace etc {

struct EncoderStates {
  Var long_states;          // [T, H]
  Var global_states;        // [U, H]; undefined: the encoder has none
  LayerMemory memory = {};  // for the next segment's input; empty: the encoder keeps none
};

// Running scores C after a layer in the external form, by the name of their attention type. That of a window is
// [N, T, W]; others are flat, one example after the other, [N, queries, keys] each.
class ExternalScores {
 public:
  void add(std::string type, Tensor scores) { scores_.emplace_back(std::move(type), std::move(scores)); }
  Tensor of(std::string_view type) const;  // undefined: the type carries none
  auto begin() const { return scores_.begin(); }
  auto end() const { return scores_.end(); }

 private:
  std::vector<std::pair<std::string, Tensor>> scores_;
};

// Called after the embedding stage (layer -1) and after each layer, with numbers the host can read: long_states [T, H],
// global_states [U, H] or undefined; scores only with residual attention.
using LayerWatch = std::function<void(std::int64_t layer, const Tensor& long_states, const Tensor& global_states,
                                      const ExternalScores& scores)>;

struct WatchedAttention;  // autograd/attention.h

// What happens in one call.
struct ForwardOptions {
  bool training = false;   // dropout acts (needs a tape that records; without it a recording tape has no dropout)
  std::uint64_t seed = 0;  // of the run's dropout
  std::int64_t step = 0;   // while training: steps done before this one
  // Of the encoder's products on a tape that records: fp32 or bf16 (base/compute_type.h says what is rounded). Another
  // tape has that of release_kernels().
  ComputeType compute = ComputeType::fp32;
  LayerWatch watch;  // for `encode --all-layers` and tests; null costs nothing. Not called after the call.
  // Called after each attention operator of each layer, with what it read; null costs nothing. Not called after the
  // call, nor by attention without pairs (performer).
  std::function<void(const WatchedAttention&)> attention_watch = nullptr;
};

// It computes where its parameters are (ParameterSet::to); results lie there, too.
class Encoder {
 public:
  virtual ~Encoder() = default;

  virtual const EncoderConfig& config() const = 0;

  // Throws Error naming tensor, example, position and limit on an input that cannot be meant (input_checks.h).
  // The input need not outlive the call, except the adders' numbers, which the caller must not change before backward.
  virtual EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) = 0;

  // Packs all dense layers and gives the kernels' own memory back: halves the weights of a program that only runs the
  // model. Afterwards these parameters have no value: recording and saving are Errors until they are loaded anew.
  // types.compute: of dense products and, bf16 for int8 as well, of attention's; types.scores: of the running scores of
  // passes that do not record. Error where not offered.
  void release_kernels(InferenceTypes types = {}) { release(types); }

 private:
  virtual void release(InferenceTypes types) = 0;
};

}  // namespace etc
