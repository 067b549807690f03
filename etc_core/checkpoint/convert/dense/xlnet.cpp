// XLNet (Yang et al. 2019) for a single text, without permutations and memory: a post-norm encoder with
// Transformer-XL's relative distances in both directions.
//
//   rel_attn.q, k, v, r [H, N, D]   kernels of queries, keys, values and of the sinusoids     no biases
//   rel_attn.o [H, N, D]            the output projection
//   r_w_bias, r_r_bias [N, D]       u: the queries' bias for keys; v: that for distances
//   r_s_bias, seg_embed             scores of segments: equal for all keys of a query within one segment, so that they
//                                   have no effect; the segment table has one row, so that two segments are refused
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/dense/families.h"
#include "etc_core/checkpoint/convert/model_type.h"
#include "etc_core/nn/model_sizes.h"

namespace etc::convert {

namespace {

constexpr std::int64_t kUnclamped = 512;  // relative_clip where the model has no limit

struct XlnetConfig {
  std::int64_t vocab_size = 0, d_model = 0, n_layer = 0, n_head = 0, d_inner = 0;
  std::string ff_activation = "gelu";
  std::string attn_type = "bi";
  bool bi_data = false;
  std::int64_t clamp_len = -1;
  double dropout = 0.1, layer_norm_eps = 1e-12, initializer_range = 0.02;
};

const FieldList<XlnetConfig>& fields() {
  const FieldRule size{.least = 1, .most = kMaxModelSize}, rate{.least = 0, .below = 1};
  static const FieldList<XlnetConfig> kFields{
      {"vocab_size", &XlnetConfig::vocab_size, "rows of the token table", size},
      {"d_model", &XlnetConfig::d_model, "width of the states", size},
      {"n_layer", &XlnetConfig::n_layer, "layers", size},
      {"n_head", &XlnetConfig::n_head, "heads", size},
      {"d_inner", &XlnetConfig::d_inner, "feed-forward width", size},
      {"ff_activation", &XlnetConfig::ff_activation, "activation of the feed-forward layers"},
      {"attn_type", &XlnetConfig::attn_type, "bi, or uni: causal", {.words = {"bi", "uni"}}},
      {"bi_data", &XlnetConfig::bi_data, "half of the batch is read backwards"},
      {"clamp_len",
       &XlnetConfig::clamp_len,
       "farther tokens count as this far; not above 0: as they are",
       {.least = -1, .most = 1 << 15}},
      {"dropout", &XlnetConfig::dropout, "dropout", rate},
      {"layer_norm_eps", &XlnetConfig::layer_norm_eps, "epsilon of the norms", {.least = 1e-30, .most = 1}},
      {"initializer_range", &XlnetConfig::initializer_range, "deviation of fresh weights", {.least = 0, .most = 1e6}},
  };
  return kFields;
}

DenseConfig dense_config(const XlnetConfig& own, const std::string& where) {
  DenseConfig config;
  config.vocab_size = own.vocab_size;
  config.hidden_size = own.d_model;
  config.num_hidden_layers = own.n_layer;
  config.num_attention_heads = own.n_head;
  config.intermediate_size = own.d_inner;
  config.hidden_act = hub_activation(own.ff_activation, where, "ff_activation");
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = own.dropout;
  config.initializer_range = own.initializer_range;
  config.layer_norm_epsilon = own.layer_norm_eps;
  config.segment_vocab_size = 1;
  config.max_absolute_position_embeddings = 0;
  config.embedding_layer_norm = false;
  config.causal = own.attn_type == "uni";
  config.relative_positions = DenseConfig::Method::transformer_xl;
  config.relative_clip = own.clamp_len > 0 ? own.clamp_len : kUnclamped;
  return config;
}

StoredPlace place(std::string_view stored) {
  static const std::map<std::string_view, StoredPlace> kOfLayer = {
      {"rel_attn.q", {"attention/self/query/kernel", StoredForm::heads}},
      {"rel_attn.k", {"attention/self/key/kernel", StoredForm::heads}},
      {"rel_attn.v", {"attention/self/value/kernel", StoredForm::heads}},
      {"rel_attn.r", {"attention/self/relative_projection", StoredForm::heads}},
      {"rel_attn.o", {"attention/output/dense/kernel", StoredForm::by_heads}},
      {"rel_attn.r_w_bias", {"attention/self/query/bias", StoredForm::heads}},
      {"rel_attn.r_r_bias", {"attention/self/relative_position_bias"}},
      {"rel_attn.layer_norm.weight", {"attention/output/LayerNorm/gamma"}},
      {"rel_attn.layer_norm.bias", {"attention/output/LayerNorm/beta"}},
      {"ff.layer_1.weight", {"intermediate/dense/kernel", StoredForm::transposed}},
      {"ff.layer_1.bias", {"intermediate/dense/bias"}},
      {"ff.layer_2.weight", {"output/dense/kernel", StoredForm::transposed}},
      {"ff.layer_2.bias", {"output/dense/bias"}},
      {"ff.layer_norm.weight", {"output/LayerNorm/gamma"}},
      {"ff.layer_norm.bias", {"output/LayerNorm/beta"}},
  };
  constexpr std::string_view kPrefix = "transformer.";
  if (stored.starts_with(kPrefix)) stored.remove_prefix(kPrefix.size());
  if (stored == "word_embedding.weight") return {"bert/embeddings/word_embeddings"};
  std::string_view rest;
  const std::int64_t layer = numbered(stored, "layer.", rest);
  const auto found = layer < 0 ? kOfLayer.end() : kOfLayer.find(rest);
  if (found == kOfLayer.end()) return {};
  StoredPlace own = found->second;
  own.parameter = dense_layer(layer) + own.parameter;
  return own;
}

bool is_zero(std::string_view parameter) {
  return parameter == "bert/embeddings/token_type_embeddings" || parameter.ends_with("/self/key/bias") ||
         parameter.ends_with("/self/value/bias") || parameter.ends_with("/attention/output/dense/bias");
}

std::string why_left_out(std::string_view stored) {
  if (stored.ends_with("seg_embed") || stored.ends_with("r_s_bias")) {
    return "scores of segments: they change nothing within one segment";
  }
  if (stored.ends_with("mask_emb")) return "what is read in place of a token that pre-training hides";
  if (stored.starts_with("lm_loss") || stored.starts_with("sequence_summary") || stored.starts_with("logits_proj")) {
    return "head: the dense encoder takes none of XLNet's";
  }
  return kUnknownTensor;
}

bool is_encoder(std::string_view stored) {
  for (const std::string_view prefix : {"transformer.", "layer.", "word_embedding."}) {
    if (stored.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

ForeignEncoder xlnet_encoder(const Json& json, const std::string& where) {
  require_model_type(json, where, "xlnet");
  for (const char* key : {"vocab_size", "d_model", "n_layer", "n_head", "d_inner"}) {
    if (!json.contains(key)) fail_usage(where, "no {}: not the configuration of an XLNet", key);
  }
  const XlnetConfig own = fields().read(json, where);
  if (own.bi_data) fail_usage(where, "bi_data: expected false, got true: half of a batch is read backwards there");
  ForeignEncoder foreign{"XLNet", dense_config(own, where), {}, place, is_zero, why_left_out, is_encoder};
  foreign.notes.push_back("one segment alone: XLNet's scores of two segments have no place in a dense encoder");
  if (own.clamp_len <= 0) {
    foreign.notes.push_back(
        fmt::format("relative_clip is {}: for more than {} tokens set it in config.json to their number less one, no "
                    "weight depends on it",
                    kUnclamped, kUnclamped + 1));
  }
  return foreign;
}

}  // namespace etc::convert
