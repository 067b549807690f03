// The encoder of T5 (Raffel et al. 2020): pre-norm by root mean squares, no biases, scores without scale, one table of
// distance buckets for all layers.
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/dense/families.h"
#include "etc_core/checkpoint/convert/model_type.h"
#include "etc_core/nn/model_sizes.h"

namespace etc::convert {

namespace {

struct T5Config {
  std::int64_t vocab_size = 0, d_model = 0, num_layers = 0, num_heads = 0, d_ff = 0, d_kv = 64;
  std::int64_t relative_attention_num_buckets = 32, relative_attention_max_distance = 128;
  std::string feed_forward_proj = "relu";
  double dropout_rate = 0.1, layer_norm_epsilon = 1e-6;
};

const FieldList<T5Config>& fields() {
  const FieldRule size{.least = 1, .most = kMaxModelSize}, rate{.least = 0, .below = 1};
  static const FieldList<T5Config> kFields{
      {"vocab_size", &T5Config::vocab_size, "rows of the token table", size},
      {"d_model", &T5Config::d_model, "width of the states", size},
      {"num_layers", &T5Config::num_layers, "layers of the encoder", size},
      {"num_heads", &T5Config::num_heads, "heads", size},
      {"d_ff", &T5Config::d_ff, "feed-forward width", size},
      {"d_kv", &T5Config::d_kv, "head size", size},
      {"relative_attention_num_buckets", &T5Config::relative_attention_num_buckets, "buckets of distances", size},
      {"relative_attention_max_distance", &T5Config::relative_attention_max_distance, "farther ones share one", size},
      {"feed_forward_proj", &T5Config::feed_forward_proj, "activation of the feed-forward layers"},
      {"dropout_rate", &T5Config::dropout_rate, "dropout", rate},
      {"layer_norm_epsilon", &T5Config::layer_norm_epsilon, "epsilon of the norms", {.least = 1e-30, .most = 1}},
  };
  return kFields;
}

DenseConfig dense_config(const T5Config& own, const std::string& where) {
  DenseConfig config;
  config.vocab_size = own.vocab_size;
  config.hidden_size = own.d_model;
  config.num_hidden_layers = own.num_layers;
  config.num_attention_heads = own.num_heads;
  config.att_size_per_head = own.d_kv;
  config.intermediate_size = own.d_ff;
  config.hidden_act = hub_activation(own.feed_forward_proj, where, "feed_forward_proj");
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = own.dropout_rate;
  config.norm = DenseConfig::Norm::pre_ln;
  config.normalization = DenseConfig::Normalization::rms_norm;
  config.layer_norm_epsilon = own.layer_norm_epsilon;
  config.segment_vocab_size = 1;
  config.max_absolute_position_embeddings = 0;
  config.embedding_layer_norm = false;
  config.relative_positions = DenseConfig::Method::t5;
  config.relative_buckets = own.relative_attention_num_buckets;
  config.relative_max_distance = own.relative_attention_max_distance;
  return config;
}

StoredPlace place_in_layer(std::string_view rest) {
  static const std::map<std::string_view, StoredPlace> kOfLayer = {
      {"layer.0.SelfAttention.q.weight", {"attention/self/query/kernel", StoredForm::transposed}},
      {"layer.0.SelfAttention.k.weight", {"attention/self/key/kernel", StoredForm::transposed}},
      {"layer.0.SelfAttention.v.weight", {"attention/self/value/kernel", StoredForm::transposed}},
      {"layer.0.SelfAttention.o.weight", {"attention/output/dense/kernel", StoredForm::transposed}},
      {"layer.0.layer_norm.weight", {"attention/output/LayerNorm/gamma"}},
      {"layer.1.DenseReluDense.wi.weight", {"intermediate/dense/kernel", StoredForm::transposed}},
      {"layer.1.DenseReluDense.wo.weight", {"output/dense/kernel", StoredForm::transposed}},
      {"layer.1.layer_norm.weight", {"output/LayerNorm/gamma"}},
  };
  const auto found = kOfLayer.find(rest);
  return found == kOfLayer.end() ? StoredPlace() : found->second;
}

StoredPlace place(std::string_view stored) {
  if (stored == "shared.weight") return {"bert/embeddings/word_embeddings"};
  if (stored == "encoder.final_layer_norm.weight") return {"bert/encoder/final/LayerNorm/gamma"};
  if (stored == "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight") {
    return {"bert/encoder/relative_table"};
  }
  std::string_view rest;
  const std::int64_t layer = numbered(stored, "encoder.block.", rest);
  if (layer < 0) return {};
  StoredPlace own = place_in_layer(rest);
  if (!own.parameter.empty()) own.parameter = dense_layer(layer) + own.parameter;
  return own;
}

bool is_zero(std::string_view parameter) {
  return parameter == "bert/embeddings/token_type_embeddings" || parameter.ends_with("/bias") ||
         parameter.ends_with("/LayerNorm/beta");
}

std::string why_left_out(std::string_view stored) {
  if (stored.starts_with("decoder.")) return "decoder: a dense encoder has none";
  if (stored.starts_with("lm_head.")) return "head of the decoder";
  if (stored == "encoder.embed_tokens.weight" || stored == "decoder.embed_tokens.weight") {
    return "a copy of a tied tensor";
  }
  return kUnknownTensor;
}

bool is_encoder(std::string_view stored) {
  for (const std::string_view prefix : {"shared.", "encoder."}) {
    if (stored.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

ForeignEncoder t5_encoder(const Json& json, const std::string& where, const TensorSource& source) {
  require_model_type(json, where, "t5");
  for (const char* key : {"vocab_size", "d_model", "num_layers", "num_heads", "d_ff"}) {
    if (!json.contains(key)) fail_usage(where, "no {}: not the configuration of a T5", key);
  }
  const T5Config own = fields().read(json, where);
  if (own.feed_forward_proj.starts_with("gated-")) {
    fail_usage(where,
               "feed_forward_proj: expected relu or gelu, got {}: gated feed-forward layers (T5 1.1) are not those of "
               "a dense encoder",
               own.feed_forward_proj);
  }
  ForeignEncoder foreign{"T5 encoder", dense_config(own, where), {}, place, is_zero, why_left_out, is_encoder};
  if (!source.tensors().contains("shared.weight")) {  // a separately saved encoder may use another name for its table
    foreign.place = [](std::string_view stored) {
      return place(stored == "encoder.embed_tokens.weight" ? "shared.weight" : stored);
    };
  }
  return foreign;
}

}  // namespace etc::convert
