#include "etc_core/nn/dense_encoder.h"

#include <string>
#include <utility>
#include <vector>

#include "etc_core/nn/blocks/encoder_pass.h"
#include "etc_core/nn/dense_attention.h"
#include "etc_core/nn/dense_layers.h"
#include "etc_core/nn/input_checks.h"
#include "etc_core/nn/packed_cache.h"
#include "etc_core/nn/projected_positions.h"

namespace etc {

namespace {

// Units of consecutive sub-layers that are recomputed together and reported as one layer: an attention and the
// feed-forwards after it; the first unit also contains the feed-forwards before it. So each unit has one step of the
// running scores.
std::vector<std::string> units_of(const std::string& order) {
  std::vector<std::string> units(1);
  for (const char sublayer : order) {
    if (sublayer == 's' && units.back().find('s') != std::string::npos) units.emplace_back();
    units.back() += sublayer;
  }
  return units;
}

}  // namespace

struct DenseEncoder::Impl {
  Impl(const DenseConfig& model, ParameterSet& set);

  // The context of one pass, which extends that of every encoder.
  struct Context : ForwardContext {
    std::shared_ptr<const RaggedRows> rows;
    DenseAttention::Shared shared;
    ProjectedPositions* projected = nullptr;  // for inference; null: computed in the pass
  };

  KeyColumns keys_of(Tape& tape, const std::vector<Columns>& of, std::int64_t layer, const Context& context) const;
  // x, the first of the states, [T, H] → [T, H]. The others are what attention passes on to the next layer.
  Var attend(Tape& tape, LayerStates& states, std::int64_t layer, const Context& context, Pass pass) const;
  Var feed_forward(Tape& tape, const Var& x, std::int64_t layer, const Context& context) const;
  PassSetting setting(const Tape& tape, const ForwardOptions& options) const;
  Context context(const EncoderInput& input, const PassSetting& setting);
  Var run(Tape& tape, Var x, const Context& context, const ForwardOptions& options);

  const DenseConfig config;
  const std::vector<std::string> units;
  std::vector<std::int64_t> first_attention, first_feed_forward;  // per unit
  const DenseParameters parameters;
  DenseAttention dense_attention{config, parameters.positions};
  PackedCache cache;
  ProjectedPositions projected;
  bool period_explained = false;
};

DenseEncoder::Impl::Impl(const DenseConfig& model, ParameterSet& set)
    : config((model.validate(), model)),
      units(units_of(config.order())),
      parameters(add_dense_parameters(set, config)) {
  std::int64_t attentions = 0, feed_forwards = 0;
  for (const std::string& unit : units) {
    first_attention.push_back(attentions);
    first_feed_forward.push_back(feed_forwards);
    for (const char sublayer : unit) ++(sublayer == 's' ? attentions : feed_forwards);
  }
}

// Keys and values of the memory, if there is one, and of the tokens, whose projections are `of`.
KeyColumns DenseEncoder::Impl::keys_of(Tape& tape, const std::vector<Columns>& of, std::int64_t layer,
                                       const Context& context) const {
  const SegmentMemory* const memory = context.shared.memory.get();
  if (memory == nullptr || !memory->seen()) return {of[1], of[2]};
  const DenseLayer& own = parameters.layers[static_cast<std::size_t>(layer)];
  const Var states = own.attention_residual.input(tape, memory->states(layer), context);
  if (context.packed != nullptr) {  // one product contains all
    const Columns all = memory->join(tape, own.attention.project(tape, states, context)[1], of[1]);
    return {all, {all.var, of[2].first}};
  }
  const auto joined = [&](std::size_t i) {
    const Dense part = context.dense(single(own.attention.projections[i]));
    return memory->join(tape, {linear(tape, states, part), 0}, of[i]);
  };
  return {joined(1), joined(2)};
}

Var DenseEncoder::Impl::attend(Tape& tape, LayerStates& states, std::int64_t layer, const Context& context,
                               Pass pass) const {
  const Var x = states[0];
  const DenseLayer& own = parameters.layers[static_cast<std::size_t>(layer)];
  const RelativeParameters tables = parameters.positions.tables(tape, layer, context.projected);
  const ElementType type = dense_attention.row_type(context.shared, layer, tables, x.value().device());
  const std::vector<Columns> of =
      own.attention.project(tape, own.attention_residual.input(tape, x, context), context, type);
  const KeyColumns keys = keys_of(tape, of, layer, context);
  if (context.shared.memory != nullptr && pass == Pass::forward) context.shared.memory->remember(layer, x.value());
  const Columns no_keys = {Var(Tensor::empty({0, config.attention_size()}, Purpose::activations, x.value().device())),
                           0};
  DenseAttention::Carried carried;
  if (states.size() > 1) carried = {states[1], states[2]};
  const Var attended =
      dense_attention.attend(tape, context.shared, layer, pass, {of[0], {{keys, {no_keys, no_keys}}}, tables}, carried);
  if (carried.q.defined()) states = {x, carried.q, carried.k};
  return own.attention_residual.output(tape, x, own.attention.project_out(tape, attended, context),
                                       context.dropout(layer, DropoutSite::long_attention_output, context.rows),
                                       context);
}

Var DenseEncoder::Impl::feed_forward(Tape& tape, const Var& x, std::int64_t layer, const Context& context) const {
  return parameters.layers[static_cast<std::size_t>(layer)].feed_forward.forward(
      tape, x, context, context.dropout(layer, DropoutSite::long_feed_forward, context.rows));
}

PassSetting DenseEncoder::Impl::setting(const Tape& tape, const ForwardOptions& options) const {
  return {config, parameters.embedding.tokens->value.device(), tape.recording(),
          tape.recording() ? InferenceTypes(options.compute) : cache.types(), options};
}

DenseEncoder::Impl::Context DenseEncoder::Impl::context(const EncoderInput& input, const PassSetting& setting) {
  Context made;
  const std::vector<std::int64_t> ordinals = ordinals_of(input);
  made.rows = ragged_rows(input.long_offsets, ordinals);
  made.shared = dense_attention.share(input, ordinals, setting);
  made.attention = made.shared.pairs;
  prepare_context(made, setting, cache);
  if (setting.recording) {
    projected.clear();
  } else {
    made.projected = &projected;
  }
  return made;
}

Var DenseEncoder::Impl::run(Tape& tape, Var x, const Context& context, const ForwardOptions& options) {
  LayerStack stack;
  stack.layers = std::ssize(units);
  stack.period = tape.recording() ? checkpoint_period(config, period_explained) : 0;
  stack.layer = [this, context](Tape& on, std::int64_t unit, LayerStates states, Pass pass) {
    const auto at = static_cast<std::size_t>(unit);
    std::int64_t attentions = first_attention[at], feed_forwards = first_feed_forward[at];
    for (const char sublayer : units[at]) {
      states[0] = sublayer == 's' ? attend(on, states, attentions++, context, pass)
                                  : feed_forward(on, states[0], feed_forwards++, context);
    }
    return states;
  };
  return run_watched(tape, std::move(x), std::move(stack), options.watch, *context.attention, parameters.final_norm);
}

std::unique_ptr<Encoder> DenseConfig::make_encoder(ParameterSet& parameters) const {
  return std::make_unique<DenseEncoder>(*this, parameters);
}

DenseEncoder::DenseEncoder(const DenseConfig& config, ParameterSet& parameters)
    : impl_(std::make_unique<Impl>(config, parameters)) {}
DenseEncoder::~DenseEncoder() = default;

const DenseConfig& DenseEncoder::config() const {
  return impl_->config;
}

EncoderStates DenseEncoder::forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) {
  check_sequence(input, impl_->config);
  const Impl::Context context = impl_->context(input, impl_->setting(tape, options));
  const PoolUse pooled(tape);
  const EmbeddedTokens tokens{context.rows, input.token_ids, input.segment_ids, input.position_ids,
                              input.long_embedding_adder};
  const Dropout dropout = context.dropout(0, DropoutSite::long_embedding, context.rows);
  EncoderStates states{
      impl_->run(tape, impl_->parameters.embedding.forward(tape, tokens, context, dropout), context, options), {}};
  if (context.shared.memory != nullptr) states.memory = context.shared.memory->after();
  return states;
}

Var DenseEncoder::forward_layers(Tape& tape, Var x, const EncoderInput& input, const ForwardOptions& options) {
  const Impl::Context context = impl_->context(input, impl_->setting(tape, options));
  const PoolUse pooled(tape);
  return impl_->run(tape, std::move(x), context, options);
}

void DenseEncoder::release(InferenceTypes types) {
  std::vector<std::vector<Dense>> layers;
  for (const DenseLayer& layer : impl_->parameters.layers) {
    layers.push_back(layer.attention.dense_layers());
    layers.back().insert(layers.back().end(), {layer.feed_forward.inner, layer.feed_forward.outer});
  }
  impl_->cache.release_kernels(layers, types);
  impl_->parameters.positions.release_kernels(impl_->projected);
}

}  // namespace etc
