// The encoder interface that trainer, tasks and tools use: a ragged batch in, states of its tokens out.
//
// Long states always exist, global states only if the encoder has global tokens. ETC (etc_encoder.h) is one
// implementation.
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
  Var global_states;        // [U, H]; undefined if the encoder has none
  LayerMemory memory = {};  // for the next segment's input; empty if the encoder keeps none
};

// Running scores C after a layer in the external form, by the name of their attention type. The scores of a windowed
// type are [N, T, W]; others are flat, example by example, [N, queries, keys] each.
class ExternalScores {
 public:
  void add(std::string type, Tensor scores) { scores_.emplace_back(std::move(type), std::move(scores)); }
  Tensor of(std::string_view type) const;  // undefined if the type carries none
  auto begin() const { return scores_.begin(); }
  auto end() const { return scores_.end(); }

 private:
  std::vector<std::pair<std::string, Tensor>> scores_;
};

// Called after the embedding stage (layer -1) and after each layer, with tensors in host memory: long_states [T, H],
// global_states [U, H] or undefined; scores only with residual attention.
using LayerWatch = std::function<void(std::int64_t layer, const Tensor& long_states, const Tensor& global_states,
                                      const ExternalScores& scores)>;

struct WatchedAttention;  // autograd/attention.h

// Options of one call.
struct ForwardOptions {
  bool training = false;   // enables dropout (needs a tape that records; without it there is no dropout)
  std::uint64_t seed = 0;  // of the run's dropout
  std::int64_t step = 0;   // while training: number of steps completed before this one
  // Number type of the encoder's products on a tape that records: fp32 or bf16 (base/compute_type.h says what is
  // rounded). Other tapes use the type given to release_kernels().
  ComputeType compute = ComputeType::fp32;
  LayerWatch watch;  // for `encode --all-layers` and tests; null costs nothing. Not called after forward() returns.
  // Called after each attention operator of each layer, with its inputs; null costs nothing. Not called after forward()
  // returns, nor by attention without pairs (performer).
  std::function<void(const WatchedAttention&)> attention_watch = nullptr;
};

// An encoder computes on the device of its parameters (ParameterSet::to); its results are there, too.
class Encoder {
 public:
  virtual ~Encoder() = default;

  virtual const EncoderConfig& config() const = 0;

  // Throws Error naming tensor, example, position and limit on an invalid input (input_checks.h).
  // The input need not outlive the call, except the adders' numbers, which the caller must not change before backward.
  virtual EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) = 0;

  // Packs all dense layers and frees the memory of the unpacked kernels, which halves the weights of a program that
  // only does inference. Afterwards these parameters have no value: recording and saving are Errors until they are
  // loaded again. types.compute: number type of dense products and of attention's products (which use bf16 if it is
  // int8); types.scores: of the running scores in passes that do not record. Throws Error if the device does not offer
  // a type.
  void release_kernels(InferenceTypes types = {}) { release(types); }

 private:
  virtual void release(InferenceTypes types) = 0;
};

}  // namespace etc
