#include "etc_core/nn/seq2seq/encoder_decoder.h"

#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/nn/counted_positions.h"
#include "etc_core/nn/input_checks.h"
#include "sparse/patterns/causal.h"
#include "sparse/seq2seq_attention.h"

namespace etc {

namespace {

// Validates the configuration before any parameter is declared.
const Seq2SeqConfig& valid(const Seq2SeqConfig& config) {
  config.validate();
  return config;
}

void check_target(const DecoderInput& input, const Var& encoder_states) {
  if (input.target_offsets.size() != input.source_offsets.size()) {
    fail(kDecoderInput, "target_offsets: expected [{}] like source_offsets, got [{}]", input.source_offsets.size(),
         input.target_offsets.size());
  }
  if (input.target_offsets.back() != std::ssize(input.target_ids)) {
    fail(kDecoderInput, "target_ids: expected {} by target_offsets, got {}", input.target_offsets.back(),
         input.target_ids.size());
  }
  if (encoder_states.value().rows() != input.source_offsets.back()) {
    fail(kDecoderInput, "encoder_states: expected {} rows by source_offsets, got {}", input.source_offsets.back(),
         encoder_states.value().shape_text());
  }
  if (!input.sample_ordinals.empty() && input.sample_ordinals.size() + 1 != input.target_offsets.size()) {
    fail(kDecoderInput, "sample_ordinals: expected {}, got {}", input.target_offsets.size() - 1,
         input.sample_ordinals.size());
  }
}

}  // namespace

std::unique_ptr<Encoder> Seq2SeqConfig::make_encoder(ParameterSet& parameters) const {
  return std::make_unique<Seq2SeqEncoder>(*this, parameters);
}

Seq2SeqEncoder::Seq2SeqEncoder(const Seq2SeqConfig& config, ParameterSet& parameters)
    : config_(valid(config)), run_(config_, add_seq2seq_stack(parameters, config_, Stack::encoder), Stack::encoder) {
  if (config_.hidden_size % 2 == 0) return;
  log::warn("seq2seq: a width of H={} leaves a last column of zeros in the sinusoids", config_.hidden_size);
}

EncoderStates Seq2SeqEncoder::forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) {
  check_sequence(input, config_);
  if (!input.memory.empty()) {
    fail(kEncoderInput, "memory: expected none, since an encoder-decoder keeps none, got {} rows",
         input.memory.offsets.back());
  }
  if (input.labels.l2l.size() > 0) fail("encoder", "labels.l2l: expected none: every token sees its whole sentence");
  sparse::SequenceLabels labels;
  labels.examples = input.batch();
  labels.offsets = input.long_offsets.data();
  labels.op = &sparse::kEncoderSelfAttention;
  std::vector<OperatorBatch> operators;
  operators.push_back({sparse::build_self_tiles(labels), false});
  StackPass pass =
      run_.pass(std::move(operators), ragged_rows(input.long_offsets, ordinals_of(input)), run_.setting(tape, options));
  pass.skip_watch = watch_;
  pass.keys = [](Tape&, std::int64_t, bool, const KeyColumns& fresh) { return fresh; };
  const PoolUse pooled(tape);
  const Var x =
      run_.embed(tape, {input.token_ids, counted_positions<std::int64_t>(input.long_offsets), "source_ids"}, pass);
  return {run_.layers(tape, x, pass, options), {}};
}

Seq2SeqDecoder::Seq2SeqDecoder(const Seq2SeqConfig& config, ParameterSet& parameters)
    : config_(valid(config)), run_(config_, add_seq2seq_stack(parameters, config_, Stack::decoder), Stack::decoder) {}

VocabularyLayer Seq2SeqDecoder::packed_output() {
  VocabularyLayer layer = output();
  layer.packed = run_.packed_table();
  return layer;
}

Var Seq2SeqDecoder::forward(Tape& tape, const Var& encoder_states, const DecoderInput& input,
                            const ForwardOptions& options) {
  check_target(input, encoder_states);
  EncoderInput target;
  target.long_offsets = input.target_offsets;
  target.sample_ordinals = input.sample_ordinals;
  sparse::CausalSequence causal;
  causal.examples = target.batch();
  causal.offsets = input.target_offsets.data();
  causal.op = &sparse::kDecoderSelfAttention;
  const sparse::CrossSequences cross{target.batch(), input.target_offsets.data(), input.source_offsets.data()};
  std::vector<OperatorBatch> operators;
  operators.push_back({sparse::build_causal_tiles(causal), false});
  operators.push_back({sparse::build_cross_tiles(cross), false});
  StackPass pass = run_.pass(std::move(operators), ragged_rows(input.target_offsets, ordinals_of(target)),
                             run_.setting(tape, options));
  pass.skip_watch = watch_;
  // A copy of the context without the parts that belong to this pass, because the closure lives as long as the tape.
  const ForwardContext context = pass;
  pass.keys = [this, encoder_states, context](Tape& on, std::int64_t layer, bool across, const KeyColumns& fresh) {
    return across ? run_.cross_keys(on, encoder_states, layer, context) : fresh;
  };
  const PoolUse pooled(tape);
  const Var x =
      run_.embed(tape, {input.target_ids, counted_positions<std::int64_t>(input.target_offsets), "target_ids"}, pass);
  return run_.layers(tape, x, pass, options);
}

}  // namespace etc
