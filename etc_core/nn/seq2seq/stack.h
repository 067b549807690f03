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

// What a pass has beside that of every encoder.
struct StackPass : ForwardContext {
  std::shared_ptr<const RaggedRows> rows;  // of the stack's own tokens
  float inner_dropout = 0;                 // after the activation
  // Keys and values that an attention reads: of its own tokens as projected, `fresh`, or of others.
  //   across: the encoder's, and fresh is empty
  std::function<KeyColumns(Tape& tape, std::int64_t layer, bool across, const KeyColumns& fresh)> keys;
};

// The tokens a stack reads, M of them.
struct StackTokens {
  const std::vector<std::int32_t>& ids;
  const std::vector<std::int64_t>& positions;  // 0: the first of its sentence
  const char* name;                            // of the ids, for messages
};

class Seq2SeqRun : NotCopied {
 public:
  // The configuration and what the parameters point to must outlive this.
  Seq2SeqRun(const Seq2SeqConfig& config, Seq2SeqStack parameters, Stack stack);

  const Seq2SeqStack& parameters() const { return parameters_; }

  PassSetting setting(const Tape& tape, const ForwardOptions& options) const;

  // A pass whose attention has these operators, the first being that of the stack's own tokens; keys is left to the
  // caller. The encoder and the decoder draw different dropout.
  StackPass pass(std::vector<OperatorBatch> operators, std::shared_ptr<const RaggedRows> rows,
                 const PassSetting& setting);

  // dropout(sqrt(H)·E[id] + sinusoid(position + 2)) → [M, H], layout halves_t2t. Throws Error on ids outside the table.
  Var embed(Tape& tape, const StackTokens& tokens, const StackPass& pass);

  // x [M, H] → [M, H], through all layers and the final norm.
  Var layers(Tape& tape, Var x, const StackPass& pass, const ForwardOptions& options);

  // Of the encoder's states [S, H] for this layer of a decoder.
  KeyColumns cross_keys(Tape& tape, const Var& encoder_states, std::int64_t layer, const ForwardContext& context) const;

  void release(InferenceTypes types);

  // The table as the matrix of an output layer, which keeps its values beside.
  const ops::PackedWeights* packed_table();

 private:
  Var attend(Tape& tape, const Var& x, std::int64_t layer, const Seq2SeqAttention& own, const StackPass& pass,
             Pass run) const;
  Var layer(Tape& tape, Var x, std::int64_t layer, const StackPass& pass, Pass run) const;

  const Seq2SeqConfig& config_;
  const Seq2SeqStack parameters_;
  const Stack stack_;
  PackedCache cache_;
  std::vector<float> sinusoids_;  // [known positions, H], grown as longer sentences come
  bool period_explained_ = false;
};

}  // namespace etc
