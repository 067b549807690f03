// The parameters of a layer and the order of its operators. Shapes refer to the whole batch: T long tokens and U global
// tokens of all examples.
#include "etc_core/nn/etc_layers.h"

#include <array>
#include <cmath>
#include <utility>

#include "etc_core/ops/activation.h"
#include "sparse/etc_attention.h"

namespace etc {

namespace {

const std::string kModel = "etc_document_bert/";

constexpr double kRelativeStddev = 0.5;  // etc-core 3

constexpr DropoutSite kEmbedding[2] = {DropoutSite::long_embedding, DropoutSite::global_embedding};
constexpr DropoutSite kAttentionOutput[2] = {DropoutSite::long_attention_output, DropoutSite::global_attention_output};
constexpr DropoutSite kFeedForward[2] = {DropoutSite::long_feed_forward, DropoutSite::global_feed_forward};

// Up to this many rows, a product in inference is dominated by the time to read its weights.
constexpr std::int64_t kFewRows = 512;

// Calls step(rows, global) for both sides. In inference, if there are few rows and both sides have the same weights,
// one call computes both, so that the weights are read once; a row's result does not depend on the other rows
// (ops/linear.h).
template <typename Step>
States on_both(Tape& tape, const States& x, bool same_weights, const EtcContext& context, Step&& step) {
  const std::int64_t longs = x.of_long.value().rows(), globals = x.of_global.value().rows();
  const bool together = same_weights && context.packed != nullptr && longs + globals <= kFewRows &&
                        x.of_long.value().device() == Device::cpu;
  if (!together) return {step(x.of_long, false), step(x.of_global, true)};
  const Var y = step(join_rows(tape, x.of_long, x.of_global), false);         // [T + U, n]
  return {row_range(tape, y, 0, longs), row_range(tape, y, longs, globals)};  // [T, n], [U, n]
}

}  // namespace

EtcEmbedding::EtcEmbedding(const EtcConfig& config, ParameterSet& parameters) {
  const std::int64_t hidden = config.hidden_size;
  const Initializer table = truncated_normal(config.initializer_range);
  const std::int64_t width = config.embedding_width();
  EmbeddingBlock& of_long = sides_[0];
  EmbeddingBlock& of_global = sides_[1];
  of_long.hidden = hidden;
  of_long.tokens = &parameters.add(kModel + "token_emb_lookup/embedding_table", {config.vocab_size, width}, table);
  if (width != hidden) {
    of_long.projection = single(add_dense(parameters, kModel + "token_emb_lookup/projection", width, hidden,
                                          truncated_normal(1 / std::sqrt(static_cast<double>(width)))));
  }
  of_long.segments =
      &parameters.add(kModel + "segment_emb_lookup/embedding_table", {config.segment_vocab_size, hidden}, table);
  of_global = of_long;  // both sides read these tables
  if (const std::int64_t rows = config.max_absolute_position_embeddings; rows > 0) {
    // The reference creates these outside of the model's scope, so they lack its prefix (etc-core 12.2).
    of_long.positions = &parameters.add("position_emb_lookup_long/embedding_table", {rows, hidden}, table);
    of_global.positions = &parameters.add("position_emb_lookup_global/embedding_table", {rows, hidden}, table);
  }
  of_long.norm = add_layer_norm(parameters, kModel + "long_emb_layer_norm", hidden);
  of_global.norm = add_layer_norm(parameters, kModel + "global_emb_layer_norm", hidden);
}

States EtcEmbedding::forward(Tape& tape, const EncoderInput& input, const EtcContext& context) const {
  const EmbeddedTokens longs{
      context.rows[0], input.token_ids, input.segment_ids, input.position_ids, input.long_embedding_adder, 1};
  const EmbeddedTokens globals{context.rows[1],
                               input.global_token_ids,
                               input.global_segment_ids,
                               input.global_position_ids,
                               input.global_embedding_adder,
                               0,
                               {"global_token_ids", "global_segment_ids", "global_position_ids"}};
  return {sides_[0].forward(tape, longs, context, context.side_dropout(0, kEmbedding, false)),
          sides_[1].forward(tape, globals, context, context.side_dropout(0, kEmbedding, true))};
}

namespace {

// Declares the parameters of one layer, in the order of the calls. H is the hidden size, A the attention size, F the
// feed-forward size.
class LayerBuilder {
 public:
  LayerBuilder(const EtcConfig& config, std::int64_t index, ParameterSet& parameters)
      : config_(config),
        parameters_(parameters),
        index_(std::to_string(index)),
        block_(layers_ + "fused_att_layer_" + index_ + "/"),
        fused_(block_ + "fused_global_local_att/"),
        kernel_(truncated_normal(config.initializer_range)) {}

  ResidualPlacement attention_residual(const char* norm) const {
    return {norm_at(), add_layer_norm(parameters_, block_ + norm, config_.hidden_size)};
  }

  // A shared projection is declared at its first use; later uses refer to the same object (etc-core 5.2). "l2g" keys
  // are keys of global tokens that long queries see.
  void add_projections(AttentionBlock& of_long, AttentionBlock& of_global) const {
    const bool share_qkv = config_.share_qkv_projections, share_kv = config_.share_kv_projections || share_qkv;
    const Dense::Part long_query = projection("long_query");
    const Dense::Part global_query = share_qkv ? long_query : projection("global_query");
    const KeyAndValue l2l = key_and_value("l2l");
    const KeyAndValue l2g = share_kv ? l2l : key_and_value("l2g");
    const KeyAndValue g2g = share_qkv ? l2l : key_and_value("g2g");
    const KeyAndValue g2l = share_kv ? g2g : key_and_value("g2l");
    of_long.projections = distinct(long_query, l2l, g2l);
    of_global.projections = distinct(global_query, g2g, l2g);
  }

  void add_outputs(AttentionBlock& of_long, AttentionBlock& of_global) const {
    of_long.output = output("long_output_projection");
    of_global.output = config_.share_att_output_projection ? of_long.output : output("global_output_projection");
  }

  void add_relative_tables(AttentionBlock& of_long, AttentionBlock& of_global) const {
    if (config_.relative_labels() == 0) return;
    of_long.relative = relative_tables("long_qkv_attention/qkv_relative_attention");
    of_global.relative = relative_tables("global_qkv_attention");
  }

  FeedForwardBlock feed_forward(const std::string& prefix) const {
    const std::int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    const std::string name = layers_ + prefix + "feed_forward_layer_" + index_;
    FeedForwardBlock made;
    made.inner = single(add_dense(parameters_, name + "/dense_layers/layer_0", hidden, inner, kernel_));
    made.outer = single(add_dense(parameters_, name + "/dense_layers/layer_1", inner, hidden, kernel_));
    made.activation = ops::activation_from_name(config_.hidden_act);
    made.residual = {norm_at(), add_layer_norm(parameters_, name + "/layer_norm", hidden)};
    return made;
  }

 private:
  using KeyAndValue = std::array<Dense::Part, 2>;

  NormPlacement norm_at() const {
    return config_.use_pre_activation_order ? NormPlacement::before : NormPlacement::after;
  }
  Dense::Part projection(const std::string& name) const {  // [H, A]
    return add_dense(parameters_, fused_ + name + "_projection/linear", config_.hidden_size, config_.attention_size(),
                     kernel_);
  }
  KeyAndValue key_and_value(const std::string& type) const {
    return {projection(type + "_key"), projection(type + "_value")};
  }
  Dense output(const char* name) const {  // [A, H]
    return single(add_dense(parameters_, fused_ + name, config_.attention_size(), config_.hidden_size, kernel_));
  }
  // The projections of one side's tokens: its query, key and value, and those that the other side reads, if different.
  static std::vector<Dense::Part> distinct(const Dense::Part& query, const KeyAndValue& own, const KeyAndValue& other) {
    std::vector<Dense::Part> parts = {query, own[0], own[1]};
    if (other[0].kernel != own[0].kernel) parts.insert(parts.end(), other.begin(), other.end());
    return parts;
  }
  RelativeParameters relative_tables(const std::string& name) const {  // [R, N, D], [R, N]
    const std::int64_t labels = config_.relative_labels(), heads = config_.num_attention_heads;
    return {&parameters_.add(fused_ + name + "/relative_emb_table", {labels, heads, config_.head_size()},
                             truncated_normal(kRelativeStddev)),
            &parameters_.add(fused_ + name + "/relative_bias_table", {labels, heads}, kZeros)};
  }

  const EtcConfig& config_;
  ParameterSet& parameters_;
  const std::string layers_ = kModel + "global_local_transformer_layers/";
  const std::string index_, block_, fused_;
  const Initializer kernel_;
};

}  // namespace

EtcLayer::EtcLayer(const EtcConfig& config, std::int64_t index, ParameterSet& parameters)
    : index_(index), share_qkv_(config.share_qkv_projections) {
  const LayerBuilder layer(config, index, parameters);
  Side &of_long = sides_[0], &of_global = sides_[1];
  of_long.attention_residual = layer.attention_residual("layer_norm_0");
  of_global.attention_residual = layer.attention_residual("layer_norm_1");
  layer.add_projections(of_long.attention, of_global.attention);
  layer.add_outputs(of_long.attention, of_global.attention);
  layer.add_relative_tables(of_long.attention, of_global.attention);
  of_long.feed_forward = layer.feed_forward(config.share_feed_forward_params ? "" : "long_");
  of_global.feed_forward = config.share_feed_forward_params ? of_long.feed_forward : layer.feed_forward("global_");
}

std::vector<Dense> EtcLayer::dense_layers() const {
  std::vector<Dense> layers;
  for (const Side& side : sides_) {
    for (const Dense& dense : side.attention.dense_layers()) layers.push_back(dense);
    for (const Dense& dense : {side.feed_forward.inner, side.feed_forward.outer}) layers.push_back(dense);
  }
  return layers;
}

States EtcLayer::forward(Tape& tape, States x, const EtcContext& context, Pass pass) const {
  const ResidualPlacement &norm_0 = sides_[0].attention_residual, &norm_1 = sides_[1].attention_residual;
  States y;  // [T, H], [U, H] after attention and its residual sum
  {
    const States a =
        attend(tape, {norm_0.input(tape, x.of_long, context), norm_1.input(tape, x.of_global, context)}, context, pass);
    y = {norm_0.output(tape, x.of_long, a.of_long, context.side_dropout(index_, kAttentionOutput, false), context),
         norm_1.output(tape, x.of_global, a.of_global, context.side_dropout(index_, kAttentionOutput, true), context)};
  }
  x = {};  // in inference this frees its memory before the feed-forward layer allocates [M, F]
  const bool shared = sides_[0].feed_forward.same_weights(sides_[1].feed_forward);
  return on_both(tape, y, shared, context, [&](const Var& rows, bool global) {
    return sides_[global].feed_forward.forward(tape, rows, context, context.side_dropout(index_, kFeedForward, global));
  });
}

namespace {

// The query of one side's tokens and the keys and values that both sides read from them, [M, A] each, from the block's
// projections in order.
struct Projected {
  Columns query;
  KeyColumns own, other;  // for this side's queries, for the other side's
};

Projected projected(const std::vector<Columns>& columns) {
  const KeyColumns own = {columns[1], columns[2]};
  return {columns[0], own, columns.size() == 3 ? own : KeyColumns{columns[3], columns[4]}};
}

}  // namespace

States EtcLayer::attend(Tape& tape, const States& x, const EtcContext& context, Pass pass) const {
  const AttentionBlock &of_long = sides_[0].attention, &of_global = sides_[1].attention;
  // Keys and values of both sides are read by both operators.
  const Device device = x.of_long.value().device();
  const AttentionBatch& batch = *context.attention;
  const bool bf16 = row_type(batch, sparse::kLongAttention, of_long.relative, device) == ElementType::bf16 &&
                    row_type(batch, sparse::kGlobalAttention, of_global.relative, device) == ElementType::bf16;
  const ElementType type = bf16 ? ElementType::bf16 : ElementType::fp32;
  Projected l, g;  // of long tokens: each [T, A]; of global tokens: each [U, A]
  if (context.packed != nullptr) {
    // [T, 3·A or 5·A], [U, 3·A or 5·A]
    const States all = on_both(tape, x, share_qkv_, context, [&](const Var& rows, bool global) {
      return linear(tape, rows, context.dense(sides_[global].attention.all_projections()), type);
    });
    l = projected(of_long.columns_of(all.of_long));
    g = projected(of_global.columns_of(all.of_global));
  } else {
    l = projected(of_long.project(tape, x.of_long, context, type));
    g = projected(of_global.project(tape, x.of_global, context, type));
  }
  // One softmax each: long queries over l2l and l2g keys [T, A], global queries over g2g and g2l keys [U, A].
  const States attended = {attention(tape, sparse::kLongAttention, context.attention, index_, pass,
                                     {l.query, {{l.own, g.other}}, of_long.relative}),
                           attention(tape, sparse::kGlobalAttention, context.attention, index_, pass,
                                     {g.query, {{g.own, l.other}}, of_global.relative})};
  // Output projections: [T, A], [U, A] -> [T, H], [U, H].
  return on_both(tape, attended, of_long.same_output(of_global), context, [&](const Var& rows, bool global) {
    return sides_[global].attention.project_out(tape, rows, context);
  });
}

}  // namespace etc
