#include "etc_core/nn/dense_config.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"
#include "etc_core/nn/dense_attention.h"
#include "etc_core/nn/model_sizes.h"

namespace etc {

namespace {

using Norm = DenseConfig::Norm;
using Choice = DenseConfig::Choice;
using Normalization = DenseConfig::Normalization;
using ResidualInit = DenseConfig::ResidualInit;
using Method = PositionConfig::Method;
using Sharing = PositionConfig::Sharing;
using TableInit = PositionConfig::TableInit;
using Attention = DenseConfig::Attention;
using AbsolutePositions = DenseConfig::AbsolutePositions;
using Norms = sparse::PerformerDraw::Norms;

const std::vector<std::string> kPresets = {"small", "base", "large", "xlarge"};

const FieldList<DenseConfig>& field_list() {
  const FieldRule size{.least = 1, .most = kMaxModelSize}, count{.least = 0, .most = kMaxModelSize};
  const FieldRule rate{.least = 0, .below = 1};
  static const FieldList<DenseConfig> kFields{
      {"vocab_size", &DenseConfig::vocab_size, "rows of the token table", size},
      {"segment_vocab_size", &DenseConfig::segment_vocab_size, "rows of the segment table", size},
      {"embedding_size", &DenseConfig::embedding_size, "width of the token table; none: hidden size", size},
      {"hidden_size", &DenseConfig::hidden_size, "width H of the hidden states", size},
      {"num_hidden_layers", &DenseConfig::num_hidden_layers, "layers", {.least = 1, .most = kMaxModelLayers}},
      {"num_attention_heads", &DenseConfig::num_attention_heads, "heads N", size},
      {"att_size_per_head", &DenseConfig::att_size_per_head, "head size D; none: hidden size / heads", size},
      {"max_absolute_position_embeddings", &DenseConfig::max_absolute_position_embeddings,
       "rows of the position table; 0: no absolute positions", count},
      {"absolute_positions",
       &DenseConfig::absolute_positions,
       "rows of the position table: learned, or fixed sinusoids: interleaved: sine, cosine, … (Vaswani et al. 2017); "
       "halves_t2t: sines, then cosines, as tensor2tensor and fairseq; halves_xl: as Transformer-XL",
       {{"learned", AbsolutePositions::learned},
        {"interleaved", AbsolutePositions::interleaved},
        {"halves_t2t", AbsolutePositions::halves_t2t},
        {"halves_xl", AbsolutePositions::halves_xl}}},
      {"intermediate_size", &DenseConfig::intermediate_size, "feed-forward width F", size},
      {"hidden_act",
       &DenseConfig::hidden_act,
       "activation of the feed-forward layers",
       {.words = {"gelu", "gelu_erf", "relu", "tanh", "linear"}}},
      {"hidden_dropout_prob", &DenseConfig::hidden_dropout_prob, "dropout of hidden states while training", rate},
      {"attention_probs_dropout_prob", &DenseConfig::attention_probs_dropout_prob,
       "dropout of attention probabilities while training", rate},
      {"initializer_range",
       &DenseConfig::initializer_range,
       "standard deviation of fresh weights",
       {.least = 0, .most = 1e6}},
      {"norm",
       &DenseConfig::norm,
       "layer norm after each residual sum, or before each sub-layer; rezero: none, a trained scale of each branch "
       "instead; rezero_post_ln: both",
       {{"post_ln", Norm::post_ln},
        {"pre_ln", Norm::pre_ln},
        {"rezero", Norm::rezero},
        {"rezero_post_ln", Norm::rezero_post_ln}}},
      {"normalization",
       &DenseConfig::normalization,
       "what a layer norm divides by: layer_norm: the standard deviation; rms_norm: the root mean square",
       {{"layer_norm", Normalization::layer_norm}, {"rms_norm", Normalization::rms_norm}}},
      {"layer_norm_epsilon",
       &DenseConfig::layer_norm_epsilon,
       "added to the variance in a layer norm",
       {.least = 1e-30, .most = 1}},
      {"rezero_per_branch", &DenseConfig::rezero_per_branch,
       "with a rezero norm: a scale for each sub-layer, not one for both of a layer"},
      {"sublayer_order", &DenseConfig::sublayer_order,
       "sub-layers from bottom to top, s: attention, f: feed-forward; empty: sfsf…"},
      {"embedding_layer_norm", &DenseConfig::embedding_layer_norm, "layer norm after the embedding sum"},
      {"final_layer_norm",
       &DenseConfig::final_layer_norm,
       "layer norm after the last layer; by_norm: with pre_ln",
       {{"by_norm", Choice::by_norm}, {"on", Choice::on}, {"off", Choice::off}}},
      {"residual_init_scale",
       &DenseConfig::residual_init_scale,
       "fresh weights: none: BERT's; gpt2: output projections times 1/sqrt(2·layers); sparse_transformer: also all "
       "by their fan in; by_norm: gpt2 with pre_ln, else none",
       {{"by_norm", ResidualInit::by_norm},
        {"none", ResidualInit::none},
        {"gpt2", ResidualInit::gpt2},
        {"sparse_transformer", ResidualInit::sparse_transformer}}},
      {"local_radius", &DenseConfig::local_radius, "tokens at most this far apart see each other; 0: all of an example",
       count},
      {"causal", &DenseConfig::causal, "tokens see themselves and what is before them"},
      {"memory_length", &DenseConfig::memory_length, "with causal: tokens of earlier segments that are seen, too",
       count},
      {"relative_positions",
       &DenseConfig::relative_positions,
       "method of relative positions in attention, instead of absolute positions",
       {{"none", Method::none},
        {"shaw", Method::shaw},
        {"shaw_values", Method::shaw_values},
        {"t5", Method::t5},
        {"transformer_xl", Method::transformer_xl},
        {"huang1", Method::huang1},
        {"huang2", Method::huang2},
        {"huang3", Method::huang3},
        {"huang4", Method::huang4},
        {"nezha_index", Method::nezha_index},
        {"nezha_signed", Method::nezha_signed},
        {"etc", Method::etc}}},
      {"relative_clip", &DenseConfig::relative_clip,
       "tokens farther apart count as this far; none: 511 of huang1 to huang4 and transformer_xl, 64 of others", count},
      {"relative_sharing",
       &DenseConfig::relative_sharing,
       "tables of shaw, huang and etc: of each layer and head, of all heads of a layer, or one; u and v of "
       "transformer_xl: of each layer, or with model one for all",
       {{"layer+head", Sharing::layer_head}, {"layer", Sharing::layer}, {"model", Sharing::model}}},
      {"relative_init",
       &DenseConfig::relative_init,
       "fresh tables; by_method: ones of huang1 to huang3, else normal",
       {{"by_method", TableInit::by_method},
        {"zeros", TableInit::zeros},
        {"ones", TableInit::ones},
        {"normal", TableInit::normal}}},
      {"relative_buckets", &DenseConfig::relative_buckets, "rows of t5's table", size},
      {"relative_max_distance", &DenseConfig::relative_max_distance, "from here on t5's distances share a bucket",
       size},
      {"xl_content_bias", &DenseConfig::xl_content_bias,
       "transformer_xl: the query's bias u is for keys alone; false: for positions, too"},
      {"xl_position_bias", &DenseConfig::xl_position_bias, "transformer_xl: a bias v of the query for positions"},
      {"attention",
       &DenseConfig::attention,
       "who sees whom; by_radius: all, or a window of local_radius; performer: linear attention",
       {{"by_radius", Attention::by_radius},
        {"full", Attention::full},
        {"window", Attention::window},
        {"bigbird", Attention::bigbird},
        {"performer", Attention::performer}}},
      {"attention_seed", &DenseConfig::attention_seed, "seed of random blocks and features", count},
      {"bigbird_block_size", &DenseConfig::bigbird_block_size, "tokens of a block", size},
      {"bigbird_random_blocks", &DenseConfig::bigbird_random_blocks, "random key blocks of each query block", count},
      {"bigbird_per_head", &DenseConfig::bigbird_per_head, "every head draws its own random blocks"},
      {"bigbird_per_layer", &DenseConfig::bigbird_per_layer, "every layer draws its own random blocks"},
      {"performer_features", &DenseConfig::performer_features, "random features of linear attention", size},
      {"performer_norms",
       &DenseConfig::performer_norms,
       "lengths of the features' directions: of Gaussian vectors, or sqrt(D)",
       {{"chi", Norms::chi}, {"root", Norms::root}}},
      {"performer_redraw", &DenseConfig::performer_redraw,
       "training steps after which features are drawn anew; 0: never", count},
      {"grad_checkpointing_period", &DenseConfig::grad_checkpointing_period,
       "keep only every n-th layer's input for the backward pass; 0: keep all", count},
      {"use_residual_attention", &DenseConfig::use_residual_attention,
       "RealFormer: attention scores are summed over the layers"},
      {"use_running_mean", &DenseConfig::use_running_mean, "logits are the mean of the scores so far, not their sum"},
      {"residual_attention_types", &DenseConfig::residual_attention_types, "attention types that carry scores: self"},
  };
  return kFields;
}

}  // namespace

DenseConfig::DenseConfig() {
  segment_vocab_size = 2;
  max_absolute_position_embeddings = 512;
  residual_attention_types = attention_types();
}

const std::vector<std::string>& DenseConfig::attention_types() const {
  static const std::vector<std::string> kTypes = {"self"};
  return kTypes;
}

void DenseConfig::keep_layers(std::int64_t layers) {
  if (layers < num_hidden_layers) sublayer_order.clear();
  EncoderConfig::keep_layers(layers);
}

std::string DenseConfig::order() const {
  return sublayer_order.empty() ? sandwich_order(num_hidden_layers, 0) : sublayer_order;
}

ops::NormStatistics DenseConfig::norm_statistics() const {
  return {static_cast<float>(layer_norm_epsilon), normalization == Normalization::layer_norm};
}

bool DenseConfig::has_final_norm() const {
  return final_layer_norm == Choice::by_norm ? norm == Norm::pre_ln : final_layer_norm == Choice::on;
}

ResidualInit DenseConfig::init() const {
  if (residual_init_scale != ResidualInit::by_norm) return residual_init_scale;
  return norm == Norm::pre_ln ? ResidualInit::gpt2 : ResidualInit::none;
}

namespace {

constexpr double kSparseTransformer = 0.125;

Initializer deviating(ResidualInit init, double stddev) {
  using Kind = Initializer::Kind;
  return {init == ResidualInit::none ? Kind::truncated_normal : Kind::normal, static_cast<float>(stddev)};
}

}  // namespace

Initializer DenseConfig::table_init() const {
  const bool sparse = init() == ResidualInit::sparse_transformer;
  return deviating(init(),
                   sparse ? kSparseTransformer / std::sqrt(static_cast<double>(hidden_size)) : initializer_range);
}

Initializer DenseConfig::kernel_init(std::int64_t fan_in) const {
  const bool sparse = init() == ResidualInit::sparse_transformer;
  return deviating(init(), sparse ? kSparseTransformer / std::sqrt(static_cast<double>(fan_in)) : initializer_range);
}

Initializer DenseConfig::output_init(std::int64_t fan_in) const {
  Initializer initial = kernel_init(fan_in);
  if (init() == ResidualInit::none) return initial;
  const double residuals = 2.0 * static_cast<double>(num_hidden_layers);
  return deviating(init(), static_cast<double>(initial.stddev) / std::sqrt(residuals));
}

namespace {

// The complete character that begins at this byte, or \xNN if no character begins there.
std::string character_at(const std::string& text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const auto ones = static_cast<std::size_t>(std::countl_one(first));  // UTF-8's first byte encodes the length, 0: one
  std::size_t end = at + 1;
  while (end < text.size() && end < at + ones && std::countl_one(static_cast<unsigned char>(text[end])) == 1) ++end;
  if (ones == 0 || (ones >= 2 && ones <= 4 && end == at + ones)) return text.substr(at, end - at);
  return fmt::format("\\x{:02X}", first);
}

// Throws unless the order contains every sub-layer of every layer exactly once.
void check_order(const std::string& order, std::int64_t layers) {
  std::int64_t attentions = 0, feed_forwards = 0;
  const auto refuse = [&](std::size_t position, const std::string& what) {
    fail_usage("config",
               "sublayer_order: expected {} times s and {} times f in any order, got {} at position {} of \"{}\"",
               layers, layers, what, position + 1, order);
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != 's' && order[i] != 'f') refuse(i, fmt::format("'{}'", character_at(order, i)));
    std::int64_t& count = order[i] == 's' ? attentions : feed_forwards;
    if (++count > layers) refuse(i, fmt::format("'{}' number {}", order[i], count));
  }
  if (attentions < layers || feed_forwards < layers) {
    refuse(order.size(), fmt::format("the end after {} times s and {} times f", attentions, feed_forwards));
  }
}

}  // namespace

void DenseConfig::validate() const {
  field_list().check(*this, "config");
  check_heads(*this);
  if (rezero_per_branch && !scales_branches()) {
    fail_usage("config", "rezero_per_branch: expected norm rezero or rezero_post_ln beside it, got {}",
               to_json().at("norm").get<std::string>());
  }
  check_order(order(), num_hidden_layers);
  if (absolute_positions != AbsolutePositions::learned && max_absolute_position_embeddings == 0) {
    fail_usage("config", "absolute_positions: expected learned with max_absolute_position_embeddings 0, got {}",
               to_json().at("absolute_positions").get<std::string>());
  }
  validate_positions(max_absolute_position_embeddings);
  if (use_running_mean && !use_residual_attention) {
    fail_usage("config",
               "use_running_mean: true: expected use_residual_attention beside it, whose scores it is the mean of");
  }
  check_attention(*this);
  if (residual_attention_types.size() > 1 ||
      (!residual_attention_types.empty() && residual_attention_types[0] != attention_types()[0])) {
    fail_usage("config", "residual_attention_types: expected [\"self\"] or [], got {}",
               json_line(Json(residual_attention_types)));
  }
}

const Fields& DenseConfig::fields() const {
  return field_list();
}

Json DenseConfig::to_json() const {
  Json json = field_list().to_json(*this);
  json["kind"] = "dense";
  return json;
}

std::string sandwich_order(std::int64_t layers, std::int64_t k) {
  if (k < 0 || k > layers) fail_usage("config", "sandwich: expected 0 … {} (layers), got {}", layers, k);
  std::string order(static_cast<std::size_t>(k), 's');
  for (std::int64_t i = k; i < layers; ++i) order += "sf";
  return order + std::string(static_cast<std::size_t>(k), 'f');
}

DenseConfig dense_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown) {
  check_keys(json, field_list(), unknown, where);
  return field_list().read_unchecked(json, where);
}

const std::vector<std::string>& dense_preset_names() {
  return kPresets;
}

DenseConfig dense_config_preset(const std::string& name) {
  struct Sizes {
    std::int64_t layers, hidden, heads;
  };
  static constexpr Sizes kSizes[] = {{4, 512, 8}, {12, 768, 12}, {24, 1024, 16}, {36, 1536, 24}};
  const auto found = std::find(kPresets.begin(), kPresets.end(), name);
  if (found == kPresets.end()) {
    fail_usage("config", "preset: expected one of {}, got \"{}\"{}", fmt::join(kPresets, ", "), name,
               suggestion(name, kPresets));
  }
  const Sizes& sizes = kSizes[found - kPresets.begin()];
  DenseConfig config;
  config.num_hidden_layers = sizes.layers;
  config.hidden_size = sizes.hidden;
  config.num_attention_heads = sizes.heads;
  config.intermediate_size = 4 * sizes.hidden;
  return config;
}

}  // namespace etc
