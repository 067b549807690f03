// What a forward pass of every encoder of attention layers needs around its layers: rows, running scores, number types,
// checkpointing, watching.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/functions.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/blocks/layer_stack.h"
#include "etc_core/nn/encoder.h"

namespace etc {

// The input's ordinals, or 0 … B-1.
std::vector<std::int64_t> ordinals_of(const EncoderInput& input);

// offsets [B+1], ordinals [B]: shared, because the closures of the tape outlive the call.
std::shared_ptr<const RaggedRows> ragged_rows(const std::vector<std::int64_t>& offsets,
                                              const std::vector<std::int64_t>& ordinals);

// The tape draws from the pool for as long as this lives: in inference the memory of a layer's results serves the next
// layer, without asking the heap. Nothing for a tape that records.
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

// What the parts of an encoder say of themselves.
struct PassSetting {
  const EncoderConfig& config;
  Device device = Device::cpu;  // where it computes
  bool recording = false;
  InferenceTypes types;  // of dense products; of running scores, where it does not record
  const ForwardOptions& options;
  std::int64_t layers = 0;  // of a stack other than the encoder's; 0: num_hidden_layers
};

// Fills in what the batch's attention has of configuration and call, once its operators are there: heads, dropout,
// number type, and with residual attention the running scores of the model's types (types[i]: that of index i).
void prepare_attention(AttentionBatch& batch, const PassSetting& setting,
                       const std::vector<sparse::AttentionType>& types, const std::vector<std::int64_t>& ordinals);

// Of what every block reads; attention is the batch's. Throws Error when training has no tape that records, or kernels that
// were released.
void prepare_context(ForwardContext& context, const PassSetting& setting, PackedCache& cache);

// grad_checkpointing_period as it acts. With running scores only single layers can be recomputed: C of a longer
// stretch's first layer would need the outputs that need C. explained: whether the log has said so.
std::int64_t checkpoint_period(const EncoderConfig& config, bool& explained);

// Tells the watch of a layer's states, long first, and of the running scores after it.
void report_layer(const LayerWatch& watch, std::int64_t layer, const LayerStates& states,
                  const AttentionBatch& attention);

// Runs the layers. The watch, where there is one, is told of their input (layer -1) and of what each of them gives, with
// the running scores of `attention` after it; stack.after is taken for that.
LayerStates run_watched(Tape& tape, LayerStates x, LayerStack stack, const LayerWatch& watch,
                        const AttentionBatch& attention);

// The same of one kind of tokens, with the norm behind the layers where there is one (gamma not null): x [T, H] → [T, H]
Var run_watched(Tape& tape, Var x, LayerStack stack, const LayerWatch& watch, const AttentionBatch& attention,
                const LayerNormParameters& final_norm);

}  // namespace etc
