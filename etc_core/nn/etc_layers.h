// The two building blocks of the encoder: the embedding stage (etc-core 3) and one layer of global-local attention and
// feed-forward (etc-core 5, 6). They declare their parameters under the names of etc-core 12.2 and run on a tape; the
// encoder is responsible for the order of layers, checkpointing and running scores.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/nn/blocks/attention_block.h"
#include "etc_core/nn/blocks/embedding_block.h"
#include "etc_core/nn/blocks/feed_forward_block.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/blocks/residual_placement.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"

namespace etc {

// The context of ETC's forward pass, which extends that of every encoder. Index 0: long side, 1: global side.
struct EtcContext : ForwardContext {
  std::shared_ptr<const RaggedRows> rows[2];

  // Dropout at one of two corresponding sites: the long side's or the global side's.
  Dropout side_dropout(std::int64_t layer, const DropoutSite (&sites)[2], bool global) const {
    return dropout(layer, sites[global], rows[global]);
  }
};

struct States {
  Var of_long;    // [T, H]
  Var of_global;  // [U, H]
};

class EtcEmbedding {
 public:
  EtcEmbedding(const EtcConfig& config, ParameterSet& parameters);

  Device device() const { return sides_[0].tokens->value.device(); }  // of the whole model

  // Token, segment and position embeddings plus adder, layer norm, dropout, for both sides.
  States forward(Tape& tape, const EncoderInput& input, const EtcContext& context) const;

 private:
  EmbeddingBlock sides_[2];  // long, global; token and segment tables are shared
};

class EtcLayer {
 public:
  EtcLayer(const EtcConfig& config, std::int64_t index, ParameterSet& parameters);

  // Takes ownership of its input, so that in inference the memory is freed as soon as the layer no longer needs it.
  States forward(Tape& tape, States x, const EtcContext& context, Pass pass) const;

  // Every dense layer as inference runs it, so that it can be packed in advance.
  std::vector<Dense> dense_layers() const;

 private:
  // Projections, both attention operators, output projections.   x and result: long [T, H], global [U, H]
  States attend(Tape& tape, const States& x, const EtcContext& context, Pass pass) const;

  // Index 0: long side, 1: global side, as in the names of the attention layer norms.
  struct Side {
    // Projections of this side's tokens: query, key and value for its own queries; then, if they have separate
    // parameters, the key and value that the other side's queries read.
    AttentionBlock attention;
    ResidualPlacement attention_residual;
    FeedForwardBlock feed_forward;
  };

  std::int64_t index_;
  bool share_qkv_;
  Side sides_[2];
};

}  // namespace etc
