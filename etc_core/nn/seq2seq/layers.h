// The parameters of an encoder-decoder, by name (translation 1 and 3).
//
//   seq2seq/embeddings/{tokens | source, target}                        [V, H]
//   seq2seq/{encoder, decoder}/layer_<i>/{self_attention, cross_attention}/{query, key, value, output}/{kernel, bias}
//   …/feed_forward/{inner, outer}/{kernel, bias}    …/<sub-layer>/LayerNorm/{gamma, beta}, …/<sub-layer>/admin_omega [H]
//   …/layer_<i>/rezero_alpha [1], of all its sub-layers      seq2seq/{encoder, decoder}/final/LayerNorm/{gamma, beta}
#pragma once

#include <vector>

#include "etc_core/nn/blocks/attention_block.h"
#include "etc_core/nn/blocks/feed_forward_block.h"
#include "etc_core/nn/seq2seq/config.h"

namespace etc {

enum class Stack { encoder, decoder };

// An attention with its residual sum.
struct Seq2SeqAttention {
  AttentionBlock queries;  // query, key and value of the layer's own tokens; cross-attention: query only
  AttentionBlock keys;     // cross-attention: key and value of the encoder's states, without output; else empty
  ResidualPlacement residual;

  bool across() const { return !keys.projections.empty(); }
  std::vector<Dense> dense_layers() const;  // as inference runs them
};

struct Seq2SeqLayer {
  std::vector<Seq2SeqAttention> attentions;  // self-attention, then in a decoder cross-attention
  FeedForwardBlock feed_forward;
};

struct Seq2SeqStack {
  Parameter* table = nullptr;  // [V, H] table of the tokens it reads
  std::vector<Seq2SeqLayer> layers;
  LayerNormParameters final_norm;  // after the last layer; null: none
};

// Declares the parameters of a stack in a fixed order; the decoder's after the encoder's, whose table it may share. The
// configuration must be valid.
Seq2SeqStack add_seq2seq_stack(ParameterSet& parameters, const Seq2SeqConfig& config, Stack stack);

}  // namespace etc
