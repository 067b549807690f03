// An encoder-decoder (Vaswani et al. 2017; translation 1): the encoder implements Encoder; the decoder reads the
// encoder's states. Batches are ragged on both sides; nothing is padded.
#pragma once

#include <vector>

#include "etc_core/autograd/vocabulary.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/seq2seq/stack.h"

namespace etc {

// The origin named in messages about a decoder's input.
constexpr const char* kDecoderInput = "decoder";

class Seq2SeqEncoder final : public Encoder {
 public:
  Seq2SeqEncoder(const Seq2SeqConfig& config, ParameterSet& parameters);

  const Seq2SeqConfig& config() const override { return config_; }

  // The input's long tokens are the source's, with </s>. Error on global tokens and labels.
  EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) override;

  // Sets the observer of the residual sums in the next passes (residual_placement.h); may be null.
  void watch_skips(SkipWatch* watch) { watch_ = watch; }

 private:
  void release(InferenceTypes types) override { run_.release(types); }

  const Seq2SeqConfig config_;
  Seq2SeqRun run_;
  SkipWatch* watch_ = nullptr;
};

// A decoder's input for a batch.
struct DecoderInput {
  const std::vector<std::int64_t>& source_offsets;  // [B+1]
  std::vector<std::int64_t> target_offsets = {0};   // [B+1]
  std::vector<std::int32_t> target_ids = {};        // [T] shifted right: </s> y_1 … y_n of each example
  std::vector<std::int64_t> sample_ordinals = {};   // [B]; part of the dropout key. Empty: 0 … B-1
};

class Seq2SeqDecoder {
 public:
  // Construct the encoder first: the decoder adds its parameters after the encoder's and may share its table.
  Seq2SeqDecoder(const Seq2SeqConfig& config, ParameterSet& parameters);

  const Seq2SeqConfig& config() const { return config_; }

  // encoder_states [S, H] → [T, H]. Row i of an example depends on its source and on target ids 0 … i alone. The watch
  // of the options is called for this stack's layers. Throws Error naming the mismatch if offsets and ids do not agree.
  Var forward(Tape& tape, const Var& encoder_states, const DecoderInput& input, const ForwardOptions& options);

  // The output layer, tied to the target's table: logits = states·Eᵀ, without bias and scale.
  VocabularyLayer output() const { return {run_.parameters().table}; }
  // The same with a packed table, which is packed again only if the table changes. The number type is that of
  // release_kernels(), or fp32 before it is called. For tapes that do not record.
  VocabularyLayer packed_output();

  // Packs all dense layers like Encoder::release_kernels.
  void release_kernels(InferenceTypes types = {}) { run_.release(types); }

  void watch_skips(SkipWatch* watch) { watch_ = watch; }

  Seq2SeqRun& run() { return run_; }  // for incremental decoding

 private:
  const Seq2SeqConfig config_;
  Seq2SeqRun run_;
  SkipWatch* watch_ = nullptr;
};

}  // namespace etc
