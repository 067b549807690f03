#include "etc_core/nn/seq2seq/stack.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "etc_core/base/counting.h"
#include "etc_core/nn/position_tables.h"
#include "sparse/seq2seq_attention.h"

namespace etc {

namespace {

constexpr std::int64_t kFirstPosition = Seq2SeqConfig::kPad + 1;

}  // namespace

Seq2SeqRun::Seq2SeqRun(const Seq2SeqConfig& config, Seq2SeqStack parameters, Stack stack)
    : config_(config), parameters_(std::move(parameters)), stack_(stack) {}

PassSetting Seq2SeqRun::setting(const Tape& tape, const ForwardOptions& options) const {
  return {config_,          parameters_.table->value.device(),
          tape.recording(), tape.recording() ? InferenceTypes(options.compute) : cache_.types(),
          options,          std::ssize(parameters_.layers)};
}

StackPass Seq2SeqRun::pass(std::vector<OperatorBatch> operators, std::shared_ptr<const RaggedRows> rows,
                           const PassSetting& setting) {
  constexpr std::uint64_t kDecoderStream = 0xdec0de;
  StackPass made;
  made.rows = std::move(rows);
  made.attention = std::make_shared<AttentionBatch>();
  made.attention->operators = std::move(operators);
  std::vector<sparse::AttentionType> types{sparse::kEncoderSelf, sparse::kEncoderSelfAttention.types[1]};
  if (stack_ == Stack::decoder) {
    types = {sparse::kCross, sparse::kCrossAttention.types[1], sparse::kDecoderSelf,
             sparse::kDecoderSelfAttention.types[1]};
  }
  const std::vector<std::uint64_t>& ordinals = made.rows->sample_ordinals;
  prepare_attention(*made.attention, setting, types, {ordinals.begin(), ordinals.end()});
  prepare_context(made, setting, cache_);
  if (setting.options.training) made.inner_dropout = static_cast<float>(config_.inner_dropout_prob);
  if (stack_ == Stack::decoder) made.seed = made.attention->seed = mix_key(made.seed, kDecoderStream);
  return made;
}

Var Seq2SeqRun::embed(Tape& tape, const StackTokens& tokens, const StackPass& pass) {
  const std::int64_t count = std::ssize(tokens.ids), width = config_.hidden_size;
  const std::int64_t longest = tokens.positions.empty() ? 0 : *std::ranges::max_element(tokens.positions) + 1;
  if (const std::int64_t known = std::ssize(sinusoids_) / width; known < longest) {
    std::vector<std::int64_t> positions(static_cast<std::size_t>(std::max(longest, 2 * known)));
    std::iota(positions.begin(), positions.end(), kFirstPosition);
    sinusoids_ = sinusoids(SinusoidLayout::halves_t2t, positions, width);
  }
  const Tensor rows = Tensor::empty({count, width}, Purpose::activations);  // [M, H]
  for (std::int64_t i = 0; i < count && !counting(); ++i) {
    const std::int64_t position = tokens.positions[static_cast<std::size_t>(i)];
    std::copy_n(sinusoids_.data() + position * width, width, rows.data() + i * width);
  }
  const auto ids = std::make_shared<const std::vector<std::int32_t>>(tokens.ids);
  const Var e = embedding(tape, {.rows = pass.rows, .width = width, .tokens = {parameters_.table, ids, tokens.name}});
  const float factor = static_cast<float>(std::sqrt(static_cast<double>(width)));
  const Var x = scaled_residual(tape, Var(rows.to(parameters_.table->value.device())), e, factor);
  return dropout(tape, x, pass.dropout(0, DropoutSite::long_embedding, pass.rows));
}

KeyColumns Seq2SeqRun::cross_keys(Tape& tape, const Var& encoder_states, std::int64_t layer,
                                  const ForwardContext& context) const {
  const AttentionBlock& keys = parameters_.layers[static_cast<std::size_t>(layer)].attentions[1].keys;
  const std::vector<Columns> of = keys.project(tape, encoder_states, context);
  return {of[0], of[1]};
}

Var Seq2SeqRun::attend(Tape& tape, const Var& x, std::int64_t layer, const Seq2SeqAttention& own, const StackPass& pass,
                       Pass run) const {
  const std::vector<Columns> of = own.queries.project(tape, own.residual.input(tape, x, pass), pass);
  const KeyColumns fresh = own.across() ? KeyColumns{} : KeyColumns{of[1], of[2]};
  const KeyColumns keys = pass.keys(tape, layer, own.across(), fresh);
  const Columns no_keys{Var(Tensor::empty({0, config_.attention_size()}, Purpose::activations, x.value().device())), 0};
  const sparse::AttentionOperator& op = *pass.attention->operators[own.across() ? 1 : 0].tiles.op;
  const Var attended = attention(tape, op, pass.attention, layer, run, {of[0], {{keys, {no_keys, no_keys}}}, {}});
  const DropoutSite site = own.across() ? DropoutSite::global_attention_output : DropoutSite::long_attention_output;
  return own.residual.output(tape, x, own.queries.project_out(tape, attended, pass),
                             pass.dropout(layer, site, pass.rows), pass);
}

Var Seq2SeqRun::layer(Tape& tape, Var x, std::int64_t layer, const StackPass& pass, Pass run) const {
  const Seq2SeqLayer& own = parameters_.layers[static_cast<std::size_t>(layer)];
  for (const Seq2SeqAttention& attention : own.attentions) x = attend(tape, x, layer, attention, pass, run);
  Dropout of_inner = pass.dropout(layer, DropoutSite::global_feed_forward, pass.rows);
  of_inner.rate = pass.inner_dropout;
  return own.feed_forward.forward(tape, x, pass, pass.dropout(layer, DropoutSite::long_feed_forward, pass.rows),
                                  of_inner);
}

Var Seq2SeqRun::layers(Tape& tape, Var x, const StackPass& pass, const ForwardOptions& options) {
  LayerStack stack;
  stack.layers = std::ssize(parameters_.layers);
  stack.period = tape.recording() ? checkpoint_period(config_, period_explained_) : 0;
  stack.layer = [this, pass](Tape& on, std::int64_t number, LayerStates states, Pass run) {
    states[0] = layer(on, std::move(states[0]), number, pass, run);
    return states;
  };
  return run_watched(tape, std::move(x), std::move(stack), options.watch, *pass.attention, parameters_.final_norm);
}

const ops::PackedWeights* Seq2SeqRun::packed_table() {
  Dense dense;
  dense.parts = {{parameters_.table, nullptr}};
  dense.layout = ops::WeightLayout::out_in;
  return cache_.packed(dense).packed;
}

void Seq2SeqRun::release(InferenceTypes types) {
  std::vector<std::vector<Dense>> all;
  for (const Seq2SeqLayer& layer : parameters_.layers) {
    std::vector<Dense>& own = all.emplace_back();
    for (const Seq2SeqAttention& attention : layer.attentions) {
      const std::vector<Dense> dense = attention.dense_layers();
      own.insert(own.end(), dense.begin(), dense.end());
    }
    own.insert(own.end(), {layer.feed_forward.inner, layer.feed_forward.outer});
  }
  cache_.release_kernels(all, types);
}

}  // namespace etc
