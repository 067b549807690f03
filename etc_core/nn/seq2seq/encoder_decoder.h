// An encoder-decoder (Vaswani et al. 2017; translation 1): the encoder as every encoder, the decoder for whoever has
// its states. Batches are ragged on both sides; nothing is padded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/autograd/vocabulary.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/seq2seq/stack.h"

namespace etc {

// Where messages about a decoder's input say they come from.
constexpr const char* kDecoderInput = "decoder";

class Seq2SeqEncoder final : public Encoder {
 public:
  Seq2SeqEncoder(const Seq2SeqConfig& config, ParameterSet& parameters);

  const Seq2SeqConfig& config() const override { return config_; }

  // The input's long tokens are the source's, with </s>. Error on global tokens and labels.
  EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) override;

  // Who sees the residual sums of the next passes (residual_placement.h); null: nobody.
  void watch_skips(SkipWatch* watch) { watch_ = watch; }

 private:
  void release(InferenceTypes types) override { run_.release(types); }

  const Seq2SeqConfig config_;
  Seq2SeqRun run_;
  SkipWatch* watch_ = nullptr;
};

// What a decoder reads of a batch.
struct DecoderInput {
  const std::vector<std::int64_t>& source_offsets;  // [B+1]
  std::vector<std::int64_t> target_offsets = {0};   // [B+1]
  std::vector<std::int32_t> target_ids = {};        // [T] shifted right: </s> y_1 … y_n of each example
  std::vector<std::int64_t> sample_ordinals = {};   // [B]; keys dropout. Empty: 0 … B-1
};

class Seq2SeqDecoder {
 public:
  // Its parameters are added behind those of the encoder, whose table it may share: make that first.
  Seq2SeqDecoder(const Seq2SeqConfig& config, ParameterSet& parameters);

  const Seq2SeqConfig& config() const { return config_; }

  // encoder_states [S, H] → [T, H]. Row i of an example depends on its source and on target ids 0 … i alone. The watch of
  // the options is told of this stack's layers. Throws Error naming what disagrees in offsets and ids.
  Var forward(Tape& tape, const Var& encoder_states, const DecoderInput& input, const ForwardOptions& options);

  // The output layer, tied to the target's table: logits = states·Eᵀ, neither bias nor scale.
  VocabularyLayer output() const { return {run_.parameters().table}; }
  // The same with the table packed, once as long as it does not change, in the number type of release_kernels(), before
  // it in fp32. For tapes that do not record.
  VocabularyLayer packed_output();

  // Packs all dense layers, as Encoder::release_kernels.
  void release_kernels(InferenceTypes types = {}) { run_.release(types); }

  void watch_skips(SkipWatch* watch) { watch_ = watch; }

  Seq2SeqRun& run() { return run_; }  // for incremental decoding

 private:
  const Seq2SeqConfig config_;
  Seq2SeqRun run_;
  SkipWatch* watch_ = nullptr;
};

}  // namespace etc
