// A pass through one stack of an encoder-decoder: embedding, layers, final norm (translation 1 and 2).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "etc_core/base/not_copied.h"
#include "etc_core/nn/blocks/encoder_pass.h"
#include "etc_core/nn/seq2seq/layers.h"

namespace etc {

// The context of a pass, which extends that of every encoder.
struct StackPass : ForwardContext {
  std::shared_ptr<const RaggedRows> rows;  // of the stack's own tokens
  float inner_dropout = 0;                 // after the activation
  // Returns the keys and values that an attention reads: from `fresh`, its own projected tokens, or from others.
  //   across: cross-attention to the encoder's states; `fresh` is empty
  std::function<KeyColumns(Tape& tape, std::int64_t layer, bool across, const KeyColumns& fresh)> keys;
};

// The tokens a stack reads, M of them.
struct StackTokens {
  const std::vector<std::int32_t>& ids;
  const std::vector<std::int64_t>& positions;  // 0: the first token of its sentence
  const char* name;                            // of the ids, for messages
};

class Seq2SeqRun : NotCopied {
 public:
  // The configuration and the parameters pointed to must outlive this object.
  Seq2SeqRun(const Seq2SeqConfig& config, Seq2SeqStack parameters, Stack stack);

  const Seq2SeqStack& parameters() const { return parameters_; }

  PassSetting setting(const Tape& tape, const ForwardOptions& options) const;

  // A pass whose attention has these operators; the first is the self-attention. The caller sets `keys`. The encoder
  // and the decoder draw different dropout.
  StackPass pass(std::vector<OperatorBatch> operators, std::shared_ptr<const RaggedRows> rows,
                 const PassSetting& setting);

  // dropout(sqrt(H)·E[id] + sinusoid(position + 2)) → [M, H], layout halves_t2t. Throws Error on ids outside the table.
  Var embed(Tape& tape, const StackTokens& tokens, const StackPass& pass);

  // x [M, H] → [M, H], through all layers and the final norm.
  Var layers(Tape& tape, Var x, const StackPass& pass, const ForwardOptions& options);

  // Keys and values of the encoder's states [S, H] for this layer of a decoder.
  KeyColumns cross_keys(Tape& tape, const Var& encoder_states, std::int64_t layer, const ForwardContext& context) const;

  void release(InferenceTypes types);

  // The table packed as the matrix of the output layer; the unpacked table keeps its values.
  const ops::PackedWeights* packed_table();

 private:
  Var attend(Tape& tape, const Var& x, std::int64_t layer, const Seq2SeqAttention& own, const StackPass& pass,
             Pass run) const;
  Var layer(Tape& tape, Var x, std::int64_t layer, const StackPass& pass, Pass run) const;

  const Seq2SeqConfig& config_;
  const Seq2SeqStack parameters_;
  const Stack stack_;
  PackedCache cache_;
  std::vector<float> sinusoids_;  // [known positions, H], extended when longer sentences occur
  bool period_explained_ = false;
};

}  // namespace etc
