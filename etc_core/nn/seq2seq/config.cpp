#include "etc_core/nn/seq2seq/config.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/model_sizes.h"

namespace etc {

namespace {

using Norm = Seq2SeqConfig::Norm;
using C = Seq2SeqConfig;

const FieldList<C>& field_list() {
  const FieldRule size{.least = 1, .most = kMaxModelSize}, count{.least = 0, .most = kMaxModelSize};
  const FieldRule rate{.least = 0, .below = 1}, layers{.least = 1, .most = kMaxModelLayers};
  static const FieldList<C> kFields{
      {"vocab_size", &C::vocab_size, "rows of the token table", size},
      {"target_vocab_size", &C::target_vocab_size, "rows of the target's own table; 0: vocab_size", count},
      {"share_embeddings", &C::share_embeddings,
       "one table for source, target and output; false: the source has one of its own"},
      {"hidden_size", &C::hidden_size, "width H of the hidden states", size},
      {"num_hidden_layers", &C::num_hidden_layers, "layers of the encoder", layers},
      {"num_decoder_layers", &C::num_decoder_layers, "layers of the decoder", layers},
      {"num_attention_heads", &C::num_attention_heads, "heads N", size},
      {"att_size_per_head", &C::att_size_per_head, "head size D; none: hidden size / heads", size},
      {"intermediate_size", &C::intermediate_size, "feed-forward width F", size},
      {"hidden_act",
       &C::hidden_act,
       "activation of the feed-forward layers",
       {.words = {"gelu", "gelu_erf", "relu", "tanh", "linear"}}},
      {"hidden_dropout_prob", &C::hidden_dropout_prob, "dropout of embeddings and sub-layers while training", rate},
      {"attention_probs_dropout_prob", &C::attention_probs_dropout_prob,
       "dropout of attention probabilities while training", rate},
      {"inner_dropout_prob", &C::inner_dropout_prob, "dropout after the activation while training", rate},
      {"norm",
       &C::norm,
       "layer norm after each residual sum, or before each sub-layer; admin: trained numbers on the skips, profiled; "
       "admin_folded: on the first of each stack alone; "
       "rezero: no norms, a trained scale of the branches; rezero_post_ln: both; deepnet: fixed numbers on the skips",
       {{"post_ln", Norm::post_ln},
        {"pre_ln", Norm::pre_ln},
        {"admin", Norm::admin},
        {"admin_folded", Norm::admin_folded},
        {"rezero", Norm::rezero},
        {"rezero_post_ln", Norm::rezero_post_ln},
        {"deepnet", Norm::deepnet}}},
      {"layer_norm_epsilon",
       &C::layer_norm_epsilon,
       "added to the variance in a layer norm",
       {.least = 1e-30, .most = 1}},
      {"grad_checkpointing_period", &C::grad_checkpointing_period,
       "keep only every n-th layer's input for the backward pass; 0: keep all", count},
      {"use_residual_attention", &C::use_residual_attention,
       "RealFormer: attention scores are summed over the layers of a stack"},
      {"use_running_mean", &C::use_running_mean, "logits are the mean of the scores so far, not their sum"},
      {"residual_attention_types",
       &C::residual_attention_types,
       "attention types that carry scores",
       {.words = {"encoder_self", "decoder_self", "cross"}}},
  };
  return kFields;
}

double real(std::int64_t number) {
  return static_cast<double>(number);
}

}  // namespace

Seq2SeqConfig::Seq2SeqConfig() {
  segment_vocab_size = 0;
  hidden_size = 512;
  num_hidden_layers = 6;
  num_attention_heads = 8;
  intermediate_size = 2048;
  hidden_act = "relu";
  use_running_mean = true;
  residual_attention_types = attention_types();
}

const std::vector<std::string>& Seq2SeqConfig::attention_types() const {
  static const std::vector<std::string> kTypes = {"encoder_self", "decoder_self", "cross"};
  return kTypes;
}

void Seq2SeqConfig::keep_layers(std::int64_t layers) {
  EncoderConfig::keep_layers(layers);
  num_decoder_layers = std::min(layers, num_decoder_layers);
}

double Seq2SeqConfig::skip_factor(bool decoder) const {
  if (norm != Norm::deepnet) return 1;
  if (decoder) return std::pow(3.0 * real(num_decoder_layers), 0.25);
  return 0.81 * std::pow(std::pow(real(num_hidden_layers), 4) * real(num_decoder_layers), 1.0 / 16);
}

Initializer Seq2SeqConfig::table_init() const {
  return {Initializer::Kind::normal, static_cast<float>(1 / std::sqrt(real(hidden_size))), kPad};
}

Initializer Seq2SeqConfig::kernel_init(Kernel kernel, bool decoder, std::int64_t in, std::int64_t out) const {
  const bool deepnet = norm == Norm::deepnet,
             fused = !deepnet && (kernel == Kernel::query_or_key || kernel == Kernel::value);
  double stddev = std::sqrt(2.0 / real(in + (fused ? 3 : 1) * out));
  if (!deepnet) return {Initializer::Kind::uniform, static_cast<float>(stddev)};
  if (kernel != Kernel::query_or_key) {
    stddev *= decoder ? std::pow(12.0 * real(num_decoder_layers), -0.25)
                      : 0.87 * std::pow(std::pow(real(num_hidden_layers), 4) * real(num_decoder_layers), -1.0 / 16);
  }
  return {Initializer::Kind::normal, static_cast<float>(stddev)};
}

void Seq2SeqConfig::validate() const {
  field_list().check(*this, "config");
  check_heads(*this);
  for (const auto& [key, rows] : {std::pair("vocab_size", vocab_size), {"target_vocab_size", target_vocabulary()}}) {
    if (rows > kUnknown + 1) continue;
    fail_usage("config", "{}: expected more than the {} special tokens, got {}", key, kUnknown + 1, rows);
  }
  if (share_embeddings && target_vocab_size != 0 && target_vocab_size != vocab_size) {
    fail_usage("config", "target_vocab_size: expected 0 with share_embeddings, whose table has {} rows, got {}",
               vocab_size, target_vocab_size);
  }
}

const Fields& Seq2SeqConfig::fields() const {
  return field_list();
}

Json Seq2SeqConfig::to_json() const {
  Json json = field_list().to_json(*this);
  json["kind"] = "seq2seq";
  return json;
}

Seq2SeqConfig seq2seq_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown) {
  check_keys(json, field_list(), unknown, where);
  return field_list().read_unchecked(json, where);
}

}  // namespace etc
