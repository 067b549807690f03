// The two building blocks of the encoder: the embedding stage (etc-core 3) and one layer of global-local attention and
// feed-forward (etc-core 5, 6). They declare their parameters under the names of etc-core 12.2 and run on a tape; the
// order of layers, checkpointing and running scores are the encoder's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/functions.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/packed_cache.h"
#include "etc_core/nn/parameters.h"

namespace etc {

// What every block of one forward pass reads besides its parameters.
struct ForwardContext {
  std::shared_ptr<const RaggedRows> long_rows;
  std::shared_ptr<const RaggedRows> global_rows;
  std::shared_ptr<AttentionBatch> attention;  // tiles, labels and running scores of the batch
  float hidden_dropout = 0;                   // 0 outside training
  std::uint64_t seed = 0;
  PackedCache* packed = nullptr;            // inference; null: kernels are read as they are
  ComputeType compute = ComputeType::fp32;  // of these

  Dropout dropout(std::int64_t layer, DropoutSite site, bool global) const;
  Dense dense(const Dense& layer) const;  // as this pass multiplies it
};

struct LayerNormParameters {
  Parameter* gamma = nullptr;  // [H]
  Parameter* beta = nullptr;   // [H]
};

struct States {
  Var of_long;    // [T, H]
  Var of_global;  // [U, H]
};

class EtcEmbedding {
 public:
  EtcEmbedding(const EtcConfig& config, ParameterSet& parameters);

  Device device() const { return tokens_->value.device(); }  // of the whole model

  // Token, segment and position embeddings plus adder, layer norm, dropout, for both sides.
  States forward(Tape& tape, const EncoderInput& input, const ForwardContext& context) const;

 private:
  // [T, H] or [U, H].
  Var side(Tape& tape, const EncoderInput& input, const ForwardContext& context, bool global) const;

  std::int64_t hidden_;
  Parameter* tokens_;                             // [V, embedding_size]
  Dense projection_;                              // no parts when embedding_size is H
  Parameter* segments_;                           // [V_s, H]
  Parameter* positions_[2] = {nullptr, nullptr};  // long, global; null: no absolute positions
  LayerNormParameters norm_[2];                   // long, global
};

class EtcLayer {
 public:
  EtcLayer(const EtcConfig& config, std::int64_t index, ParameterSet& parameters);

  // Takes its input over, so that in inference its memory is free as soon as the layer no longer needs it.
  States forward(Tape& tape, States x, const ForwardContext& context, Pass pass) const;

  // Every dense layer as inference runs it, for packing ahead.
  std::vector<Dense> dense_layers() const;

 private:
  // Projections, both attention operators, output projections.   x and result: long [T, H], global [U, H]
  States attend(Tape& tape, const States& x, const ForwardContext& context, Pass pass) const;
  // One side's feed-forward layer with its residual sum and layer norm.   y and result: [T, H] or [U, H]
  Var feed_forward_block(Tape& tape, const Var& y, const ForwardContext& context, bool global) const;

  // Index 0: long side, 1: global side, as in the names of the attention layer norms.
  struct Side {
    LayerNormParameters attention_norm, feed_forward_norm;
    Dense::Part query, key, value;       // [H, A] of this side's own tokens, for its own queries
    Dense::Part other_key, other_value;  // [H, A] of this side's tokens, for the other side's queries
    Dense output, inner, outer;          // [A, H], [H, F], [F, H]
    RelativeParameters relative;         // [R, N, D] and [R, N], of this side's queries
    Dense projections() const;           // the distinct ones of the five, side by side
  };

  std::int64_t index_;
  std::int64_t attention_size_;  // A = N·D
  bool share_qkv_;
  bool pre_activation_order_;
  ops::Activation activation_;
  Side sides_[2];
};

}  // namespace etc
