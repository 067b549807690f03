// Which parameters a layer has and in which order their operators run. Shapes are those of the whole batch: T long
// tokens, U global tokens, whatever examples they belong to.
#include "etc_core/nn/etc_layers.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace etc {

namespace {

const std::string kModel = "etc_document_bert/";

constexpr Initializer kZeros{Initializer::Kind::zeros, 0};
constexpr Initializer kOnes{Initializer::Kind::ones, 0};
constexpr float kRelativeStddev = 0.5f;  // etc-core 3

Initializer normal(double stddev) {
  return {Initializer::Kind::truncated_normal, static_cast<float>(stddev)};
}

LayerNormParameters add_layer_norm(ParameterSet& parameters, const std::string& name, std::int64_t size) {
  return {&parameters.add(name + "/gamma", {size}, kOnes), &parameters.add(name + "/beta", {size}, kZeros)};
}

Dense::Part add_dense(ParameterSet& parameters, const std::string& name, std::int64_t in, std::int64_t out,
                      Initializer kernel) {
  return {&parameters.add(name + "/kernel", {in, out}, kernel), &parameters.add(name + "/bias", {out}, kZeros)};
}

Dense single(Dense::Part part) {
  Dense dense;
  dense.parts = {part};
  return dense;
}

// Ids as given, or the default of a missing list.
std::shared_ptr<const std::vector<std::int32_t>> ids_or(const std::vector<std::int32_t>& ids, std::int64_t count,
                                                        std::int32_t missing) {
  if (!ids.empty() || count == 0) return std::make_shared<const std::vector<std::int32_t>>(ids);
  return std::make_shared<const std::vector<std::int32_t>>(static_cast<std::size_t>(count), missing);
}

// 0, 1, 2, … from the first token of each example.
std::vector<std::int32_t> counted(const std::vector<std::int64_t>& offsets) {
  std::vector<std::int32_t> ids;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    for (std::int64_t i = 0; i < offsets[b + 1] - offsets[b]; ++i) ids.push_back(static_cast<std::int32_t>(i));
  }
  return ids;
}

// Rows up to which the time of a product in inference is mostly that of reading its weights.
constexpr std::int64_t kFewRows = 512;

// Rows [first, first + count) of x [M, H] -> [count, H].
Var row_range(Tape& tape, const Var& x, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return gather_rows(tape, x, std::move(rows));
}

// step(rows, whether global) of both sides. In inference few rows of sides with the same weights go through it
// together, so that the weights are read once; a row's result knows nothing of the others (ops/linear.h).
template <typename Step>
States on_both(Tape& tape, const States& x, bool same_weights, const ForwardContext& context, Step&& step) {
  const std::int64_t longs = x.of_long.value().rows(), globals = x.of_global.value().rows();
  const bool together = same_weights && context.packed != nullptr && longs + globals <= kFewRows &&
                        x.of_long.value().device() == Device::cpu;
  if (!together) return {step(x.of_long, false), step(x.of_global, true)};
  const Var y = step(join_rows(tape, x.of_long, x.of_global), false);         // [T + U, n]
  return {row_range(tape, y, 0, longs), row_range(tape, y, longs, globals)};  // [T, n], [U, n]
}

}  // namespace

Dropout ForwardContext::dropout(std::int64_t layer, DropoutSite site, bool global) const {
  return {hidden_dropout, seed, static_cast<std::uint32_t>(layer), site, global ? global_rows : long_rows};
}

Dense ForwardContext::dense(const Dense& layer) const {
  if (packed != nullptr) return packed->packed(layer);
  Dense result = layer;
  result.compute = compute;
  return result;
}

EtcEmbedding::EtcEmbedding(const EtcConfig& config, ParameterSet& parameters) : hidden_(config.hidden_size) {
  const Initializer table = normal(config.initializer_range);
  const std::int64_t width = config.embedding_width();
  tokens_ = &parameters.add(kModel + "token_emb_lookup/embedding_table", {config.vocab_size, width}, table);
  if (width != hidden_) {
    projection_ = single(add_dense(parameters, kModel + "token_emb_lookup/projection", width, hidden_,
                                   normal(1 / std::sqrt(static_cast<double>(width)))));
  }
  segments_ =
      &parameters.add(kModel + "segment_emb_lookup/embedding_table", {config.segment_vocab_size, hidden_}, table);
  if (const std::int64_t rows = config.max_absolute_position_embeddings; rows > 0) {
    // Made outside the model's scope in the reference, hence without its prefix (etc-core 12.2).
    positions_[0] = &parameters.add("position_emb_lookup_long/embedding_table", {rows, hidden_}, table);
    positions_[1] = &parameters.add("position_emb_lookup_global/embedding_table", {rows, hidden_}, table);
  }
  norm_[0] = add_layer_norm(parameters, kModel + "long_emb_layer_norm", hidden_);
  norm_[1] = add_layer_norm(parameters, kModel + "global_emb_layer_norm", hidden_);
}

States EtcEmbedding::forward(Tape& tape, const EncoderInput& input, const ForwardContext& context) const {
  return {side(tape, input, context, false), side(tape, input, context, true)};
}

Var EtcEmbedding::side(Tape& tape, const EncoderInput& input, const ForwardContext& context, bool global) const {
  const auto& rows = global ? context.global_rows : context.long_rows;
  const std::int64_t count = rows->offsets.back();
  const Lookup tokens{tokens_, ids_or(global ? input.global_token_ids : input.token_ids, count, 0),
                      global ? "global_token_ids" : "token_ids"};
  const Lookup segments{segments_, ids_or(global ? input.global_segment_ids : input.segment_ids, count, global ? 0 : 1),
                        global ? "global_segment_ids" : "segment_ids"};
  Lookup positions;
  if (positions_[global] != nullptr) {
    const std::vector<std::int32_t>& given = global ? input.global_position_ids : input.position_ids;
    positions.table = positions_[global];
    positions.ids = std::make_shared<const std::vector<std::int32_t>>(given.empty() ? counted(rows->offsets) : given);
    positions.name = global ? "global_position_ids" : "position_ids";
  }
  // From here on M is T on the long side and U on the global side.
  const Var& adder = global ? input.global_embedding_adder : input.long_embedding_adder;  // [M, H] or none
  Var e;                                                                                  // [M, H]
  if (projection_.parts.empty()) {
    e = embedding(tape, {.rows = rows,
                         .width = hidden_,
                         .tokens = tokens,
                         .segments = segments,
                         .positions = positions,
                         .adder = adder});
  } else {
    const Var narrow = embedding(tape, {.rows = rows, .width = tokens_->shape[1], .tokens = tokens});  // [M, E]
    const Var base = linear(tape, narrow, context.dense(projection_));                                 // [M, H]
    e = embedding(
        tape,
        {.rows = rows, .width = hidden_, .base = base, .segments = segments, .positions = positions, .adder = adder});
  }
  const Var normed = layer_norm(tape, e, *norm_[global].gamma, *norm_[global].beta);  // [M, H]
  const DropoutSite site = global ? DropoutSite::global_embedding : DropoutSite::long_embedding;
  return dropout(tape, normed, context.dropout(0, site, global));
}

EtcLayer::EtcLayer(const EtcConfig& config, std::int64_t index, ParameterSet& parameters)
    : index_(index),
      attention_size_(config.attention_size()),
      share_qkv_(config.share_qkv_projections),
      pre_activation_order_(config.use_pre_activation_order),
      activation_(ops::activation_from_name(config.hidden_act)) {
  const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const Initializer kernel = normal(config.initializer_range);
  const std::string layers = kModel + "global_local_transformer_layers/";
  const std::string block = layers + "fused_att_layer_" + std::to_string(index) + "/";
  const std::string fused = block + "fused_global_local_att/";
  Side &of_long = sides_[0], &of_global = sides_[1];
  of_long.attention_norm = add_layer_norm(parameters, block + "layer_norm_0", hidden);
  of_global.attention_norm = add_layer_norm(parameters, block + "layer_norm_1", hidden);

  // A shared projection is declared at its first use and otherwise the same object (etc-core 5.2). "l2g" keys are keys
  // of global tokens that long queries see, hence of_global.other_key.
  const auto projection = [&](const char* name) {
    return add_dense(parameters, fused + name + "_projection/linear", hidden, attention_size_, kernel);
  };
  const bool share_kv = config.share_kv_projections || share_qkv_;
  of_long.query = projection("long_query");
  of_global.query = share_qkv_ ? of_long.query : projection("global_query");
  of_long.key = projection("l2l_key");
  of_long.value = projection("l2l_value");
  of_global.other_key = share_kv ? of_long.key : projection("l2g_key");
  of_global.other_value = share_kv ? of_long.value : projection("l2g_value");
  of_global.key = share_qkv_ ? of_long.key : projection("g2g_key");
  of_global.value = share_qkv_ ? of_long.value : projection("g2g_value");
  of_long.other_key = share_kv ? of_global.key : projection("g2l_key");
  of_long.other_value = share_kv ? of_global.value : projection("g2l_value");

  of_long.output = single(add_dense(parameters, fused + "long_output_projection", attention_size_, hidden, kernel));
  of_global.output =
      config.share_att_output_projection
          ? of_long.output
          : single(add_dense(parameters, fused + "global_output_projection", attention_size_, hidden, kernel));

  if (const std::int64_t labels = config.relative_labels(); labels > 0) {
    const auto tables = [&](const std::string& name) {
      return RelativeParameters{
          &parameters.add(fused + name + "/relative_emb_table",
                          {labels, config.num_attention_heads, config.head_size()}, normal(kRelativeStddev)),
          &parameters.add(fused + name + "/relative_bias_table", {labels, config.num_attention_heads}, kZeros)};
    };
    of_long.relative = tables("long_qkv_attention/qkv_relative_attention");
    of_global.relative = tables("global_qkv_attention");
  }

  const auto add_feed_forward = [&](Side& side, const std::string& prefix) {
    const std::string name = layers + prefix + "feed_forward_layer_" + std::to_string(index);
    side.inner = single(add_dense(parameters, name + "/dense_layers/layer_0", hidden, inner, kernel));
    side.outer = single(add_dense(parameters, name + "/dense_layers/layer_1", inner, hidden, kernel));
    side.feed_forward_norm = add_layer_norm(parameters, name + "/layer_norm", hidden);
  };
  if (config.share_feed_forward_params) {
    add_feed_forward(of_long, "");
    of_global.inner = of_long.inner;
    of_global.outer = of_long.outer;
    of_global.feed_forward_norm = of_long.feed_forward_norm;
  } else {
    add_feed_forward(of_long, "long_");
    add_feed_forward(of_global, "global_");
  }
}

Dense EtcLayer::Side::projections() const {
  Dense dense;
  dense.parts = {query, key, value};
  if (other_key.kernel != key.kernel) dense.parts.insert(dense.parts.end(), {other_key, other_value});
  return dense;
}

std::vector<Dense> EtcLayer::dense_layers() const {
  std::vector<Dense> layers;
  for (const Side& side : sides_) {
    for (const Dense& dense : {side.projections(), side.output, side.inner, side.outer}) layers.push_back(dense);
  }
  return layers;
}

States EtcLayer::forward(Tape& tape, States x, const ForwardContext& context, Pass pass) const {
  const Dropout of_long = context.dropout(index_, DropoutSite::long_attention_output, false);
  const Dropout of_global = context.dropout(index_, DropoutSite::global_attention_output, true);
  const LayerNormParameters &norm_0 = sides_[0].attention_norm, &norm_1 = sides_[1].attention_norm;
  States y;  // [T, H], [U, H] after attention and its residual sum
  if (pre_activation_order_) {
    // y = x + dropout(attend(layer_norm(x)))
    const States normed = {layer_norm(tape, x.of_long, *norm_0.gamma, *norm_0.beta),
                           layer_norm(tape, x.of_global, *norm_1.gamma, *norm_1.beta)};
    const States a = attend(tape, normed, context, pass);
    y = {residual(tape, x.of_long, a.of_long, of_long), residual(tape, x.of_global, a.of_global, of_global)};
  } else {
    // y = layer_norm(x + dropout(attend(x)))
    const States a = attend(tape, x, context, pass);  // [T, H], [U, H]
    y = {residual_layer_norm(tape, x.of_long, a.of_long, *norm_0.gamma, *norm_0.beta, of_long),
         residual_layer_norm(tape, x.of_global, a.of_global, *norm_1.gamma, *norm_1.beta, of_global)};
  }
  x = {};  // in inference nobody else holds it: its memory is free before the feed-forward layer asks for [M, F]
  const bool shared = sides_[0].inner.parts[0].kernel == sides_[1].inner.parts[0].kernel;
  return on_both(tape, y, shared, context,
                 [&](const Var& rows, bool global) { return feed_forward_block(tape, rows, context, global); });
}

Var EtcLayer::feed_forward_block(Tape& tape, const Var& y, const ForwardContext& context, bool global) const {
  const Side& side = sides_[global];
  const Dropout dropout =
      context.dropout(index_, global ? DropoutSite::global_feed_forward : DropoutSite::long_feed_forward, global);
  const Dense inner = context.dense(side.inner), outer = context.dense(side.outer);
  const LayerNormParameters& norm = side.feed_forward_norm;
  if (pre_activation_order_) {
    const Var normed = layer_norm(tape, y, *norm.gamma, *norm.beta);  // [M, H], M = T or U
    return residual(tape, y, feed_forward(tape, normed, inner, activation_, outer), dropout);
  }
  return residual_layer_norm(tape, y, feed_forward(tape, y, inner, activation_, outer), *norm.gamma, *norm.beta,
                             dropout);
}

namespace {

// Query, key, value, other key and other value of one side's tokens: A columns each of a variable [M, A] or [M, 3·A],
// [M, 5·A].
struct Projected {
  Columns query, key, value, other_key, other_value;
};

// Of three or five: keys and values of the other side are the own ones, or have projections of their own.
Projected projected(const Columns* columns, std::size_t count) {
  const bool shared = count == 3;
  return {columns[0], columns[1], columns[2], columns[shared ? 1 : 3], columns[shared ? 2 : 4]};
}

// From all of them side by side, `count` projections of `width` columns.
Projected in_columns(const Var& all, std::size_t count, std::int64_t width) {
  Columns columns[5];  // a variable and its first column
  for (std::size_t i = 0; i < count; ++i) columns[i] = {all, static_cast<std::int64_t>(i) * width};
  return projected(columns, count);
}

// Every projection a variable of its own.
Projected one_by_one(Tape& tape, const Var& x, const Dense& projections, const ForwardContext& context) {
  Columns columns[5];
  const std::size_t count = projections.parts.size();
  for (std::size_t i = 0; i < count; ++i) {
    columns[i] = {linear(tape, x, context.dense(single(projections.parts[i]))), 0};
  }
  return projected(columns, count);
}

}  // namespace

States EtcLayer::attend(Tape& tape, const States& x, const ForwardContext& context, Pass pass) const {
  const Side &of_long = sides_[0], &of_global = sides_[1];
  const Dense long_projections = of_long.projections(), global_projections = of_global.projections();
  Projected l, g;  // of long tokens: each [T, A]; of global tokens: each [U, A]
  // In inference one product gives all columns; in training every projection is a variable of its own, so that one
  // without a gradient (a side of the last layer that the loss does not read) leaves its parameters alone.
  if (context.packed != nullptr) {
    // [T, 3·A or 5·A], [U, 3·A or 5·A]
    const States all = on_both(tape, x, share_qkv_, context, [&](const Var& rows, bool global) {
      return linear(tape, rows, context.dense(global ? global_projections : long_projections));
    });
    l = in_columns(all.of_long, long_projections.parts.size(), attention_size_);
    g = in_columns(all.of_global, global_projections.parts.size(), attention_size_);
  } else {
    l = one_by_one(tape, x.of_long, long_projections, context);
    g = one_by_one(tape, x.of_global, global_projections, context);
  }
  const auto& batch = context.attention;
  // One softmax each: long queries over l2l and l2g keys [T, A], global queries over g2g and g2l keys [U, A].
  const Var long_out = attention(tape, sparse::kLongAttention, batch, index_, pass,
                                 {l.query, {{{l.key, l.value}, {g.other_key, g.other_value}}}, of_long.relative});
  const Var global_out = attention(tape, sparse::kGlobalAttention, batch, index_, pass,
                                   {g.query, {{{g.key, g.value}, {l.other_key, l.other_value}}}, of_global.relative});
  const bool shared = of_long.output.parts[0].kernel == of_global.output.parts[0].kernel;
  // Output projections: [T, A], [U, A] -> [T, H], [U, H].
  return on_both(tape, {long_out, global_out}, shared, context, [&](const Var& rows, bool global) {
    return linear(tape, rows, context.dense(sides_[global].output));
  });
}

}  // namespace etc
