// Helpers for the forward pass of every encoder of attention layers: rows, running scores, number types, checkpointing,
// watch callbacks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/functions.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/blocks/layer_stack.h"
#include "etc_core/nn/encoder.h"

namespace etc {

// The input's sample ordinals, or 0 … B-1 if it has none.
std::vector<std::int64_t> ordinals_of(const EncoderInput& input);

// offsets [B+1], ordinals [B]: shared, because the closures of the tape outlive the call.
std::shared_ptr<const RaggedRows> ragged_rows(const std::vector<std::int64_t>& offsets,
                                              const std::vector<std::int64_t>& ordinals);

// While this object exists, the tape allocates from a pool: in inference, the next layer reuses the memory of a layer's
// results without heap allocations. Does nothing for a tape that records.
class PoolUse {
 public:
  explicit PoolUse(Tape& tape);
  ~PoolUse();
  PoolUse(const PoolUse&) = delete;
  PoolUse& operator=(const PoolUse&) = delete;

 private:
  Tape& tape_;
  TensorPool pool_;
};

// Settings of one pass, filled in by the encoder.
struct PassSetting {
  const EncoderConfig& config;
  Device device = Device::cpu;  // where it computes
  bool recording = false;
  InferenceTypes types;  // of dense products and, if the tape does not record, of running scores
  const ForwardOptions& options;
  std::int64_t layers = 0;  // number of layers, if not num_hidden_layers (decoder stack); 0: num_hidden_layers
};

// Completes the batch's attention, whose operators must already be set, from configuration and call: heads, dropout,
// number type and, with residual attention, the running scores of the model's types (types[i]: the attention type with
// index i).
void prepare_attention(AttentionBatch& batch, const PassSetting& setting,
                       const std::vector<sparse::AttentionType>& types, const std::vector<std::int64_t>& ordinals);

// Fills in the context that every block reads, except for its attention, which the caller sets. Throws Error if
// training has no tape that records, or if kernels were released.
void prepare_context(ForwardContext& context, const PassSetting& setting, PackedCache& cache);

// The effective grad_checkpointing_period. With running scores only single layers can be recomputed: recovering C at
// the first layer of a longer range would need outputs that themselves depend on C. explained: whether this has
// already been logged.
std::int64_t checkpoint_period(const EncoderConfig& config, bool& explained);

// Calls the watch with a layer's states, long first, and the running scores after it.
void report_layer(const LayerWatch& watch, std::int64_t layer, const LayerStates& states,
                  const AttentionBatch& attention);

// Runs the layers. The watch, if set, is called with their input (layer -1) and with the output of each layer and the
// running scores of `attention` after it; stack.after is used for that.
LayerStates run_watched(Tape& tape, LayerStates x, LayerStack stack, const LayerWatch& watch,
                        const AttentionBatch& attention);

// The same for one kind of tokens, whose states are the first that a layer returns, followed by the final norm if there
// is one (gamma not null): x [T, H] → [T, H]
Var run_watched(Tape& tape, Var x, LayerStack stack, const LayerWatch& watch, const AttentionBatch& attention,
                const LayerNormParameters& final_norm);

}  // namespace etc
