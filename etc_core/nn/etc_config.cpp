#include "etc_core/nn/etc_config.h"

#include <algorithm>
#include <set>

#include "etc_core/base/ascii.h"
#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"
#include "etc_core/nn/model_sizes.h"

namespace etc {

namespace {

constexpr std::int64_t kMaxLabels = 255;  // one byte, 255 itself means masked

const std::vector<std::string> kActivations = {"gelu", "relu", "tanh", "linear"};
const std::vector<std::string> kPresets = {"tiny", "small", "base", "large"};

struct Rules {
  FieldRule size{.least = 1, .most = kMaxModelSize};
  FieldRule size_or_none{.least = 0, .most = kMaxModelSize};
  FieldRule rate{.least = 0, .below = 1};
  FieldRule types{.words = {"l2l", "l2g", "g2g", "g2l"}};
};

// The declaration of every key. validate() checks combinations of keys.
const FieldList<EtcConfig>& field_list() {
  using C = EtcConfig;
  const auto [size, size_or_none, rate, types] = Rules();
  static const FieldList<C> kFields{
      {"vocab_size", &C::vocab_size, "rows of the token table", size},
      {"segment_vocab_size", &C::segment_vocab_size, "rows of the token type table", size},
      {"embedding_size", &C::embedding_size, "width of the token table; none: hidden size", size},
      {"hidden_size", &C::hidden_size, "width H of the hidden states", size},
      {"num_hidden_layers", &C::num_hidden_layers, "layers", {.least = 1, .most = kMaxModelLayers}},
      {"num_attention_heads", &C::num_attention_heads, "heads N", size},
      {"local_radius", &C::local_radius, "long tokens see this many long tokens to each side", size},
      {"att_size_per_head", &C::att_size_per_head, "head size D; none: hidden size / heads", size},
      {"relative_pos_max_distance", &C::relative_pos_max_distance,
       "distances beyond share one relative label; 0: no relative labels", size_or_none},
      {"relative_vocab_size", &C::relative_vocab_size, "relative labels R; none: no relative attention"},
      {"max_absolute_position_embeddings", &C::max_absolute_position_embeddings,
       "rows of the position tables; 0: no absolute positions", size_or_none},
      {"intermediate_size", &C::intermediate_size, "feed-forward width F", size},
      {"hidden_act", &C::hidden_act,
       "activation of the feed-forward layers: gelu, relu, tanh, linear; of dense encoders gelu_erf, too"},
      {"hidden_dropout_prob", &C::hidden_dropout_prob, "dropout of hidden states while training", rate},
      {"attention_probs_dropout_prob", &C::attention_probs_dropout_prob,
       "dropout of attention probabilities while training", rate},
      {"initializer_range", &C::initializer_range, "standard deviation of fresh weights", {.least = 0, .most = 1e6}},
      {"share_feed_forward_params", &C::share_feed_forward_params, "one feed-forward layer for long and global tokens"},
      {"share_kv_projections", &C::share_kv_projections, "l2g uses l2l's keys and values, g2l those of g2g"},
      {"share_qkv_projections", &C::share_qkv_projections,
       "one query, key and value projection for all attention types"},
      {"share_att_output_projection", &C::share_att_output_projection,
       "one output projection for long and global tokens"},
      {"use_pre_activation_order", &C::use_pre_activation_order, "layer norm before, not after each block"},
      {"use_hard_g2l_mask", &C::use_hard_g2l_mask, "global tokens see only the long tokens that belong to them"},
      {"use_hard_l2g_mask", &C::use_hard_l2g_mask, "long tokens see only the global tokens they belong to"},
      {"grad_checkpointing_period", &C::grad_checkpointing_period,
       "keep only every n-th layer's input for the backward pass; 0: keep all"},
      {"use_residual_attention", &C::use_residual_attention, "RealFormer: attention scores are summed over the layers"},
      {"use_running_mean", &C::use_running_mean,
       "RealFormer: attend to the mean of the summed scores, not to their sum"},
      {"residual_attention_types", &C::residual_attention_types, "attention types that carry scores: l2l l2g g2g g2l",
       types},
  };
  return kFields;
}

// Converts null in foreign files to our values: 0 for a missing vocabulary size, which validate() then rejects, and the
// identity for a missing activation (etc-core 6.3).
Json without_nulls(Json json) {
  if (const auto size = json.find("vocab_size"); size != json.end() && size->is_null()) *size = 0;
  if (const auto act = json.find("hidden_act"); act != json.end() && act->is_null()) *act = "linear";
  return json;
}

std::string known(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

const std::vector<std::string>& EtcConfig::attention_types() const {
  static const std::vector<std::string> kTypes = {"l2l", "l2g", "g2g", "g2l"};
  return kTypes;
}

std::optional<sparse::LabelOptions> EtcConfig::label_options() const {
  return sparse::LabelOptions{local_radius, relative_pos_max_distance, use_hard_g2l_mask, use_hard_l2g_mask};
}

void EtcConfig::validate() const {
  field_list().check(*this, "config");
  check_heads(*this);
  if (relative_vocab_size) {
    const std::int64_t needed = 2 * relative_pos_max_distance + 4;
    if (*relative_vocab_size > kMaxLabels) {
      fail_usage("config", "relative_vocab_size: expected at most {} (labels are one byte), got {}", kMaxLabels,
                 *relative_vocab_size);
    }
    if (*relative_vocab_size < needed) {
      fail_usage("config",
                 "relative_vocab_size: expected at least {} (twice relative_pos_max_distance={}, plus 4), got {}",
                 needed, relative_pos_max_distance, *relative_vocab_size);
    }
  } else if (relative_pos_max_distance != 0) {
    fail_usage("config", "relative_pos_max_distance: expected 0 since relative_vocab_size is null, got {}",
               relative_pos_max_distance);
  }
  const std::string activation = lower_ascii(hidden_act);
  if (!activation.empty() && std::find(kActivations.begin(), kActivations.end(), activation) == kActivations.end()) {
    fail_usage("config", "hidden_act: expected one of {}, got \"{}\"{}", known(kActivations), hidden_act,
               suggestion(activation, kActivations));
  }
  std::set<std::string> seen;
  for (const std::string& type : residual_attention_types) {
    if (!seen.insert(type).second) fail_usage("config", "residual_attention_types: \"{}\" is listed twice", type);
  }
}

Json EtcConfig::to_json() const {
  return field_list().to_json(*this);
}

const Fields& EtcConfig::fields() const {
  return field_list();
}

EtcConfig etc_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown) {
  check_keys(json, field_list(), unknown, where);
  return field_list().read_unchecked(without_nulls(json), where);
}

const std::vector<std::string>& etc_preset_names() {
  return kPresets;
}

EtcConfig etc_config_preset(const std::string& name) {
  EtcConfig config;  // base: the class defaults with the changes that etc-core 2.3 gives for the released models
  config.share_qkv_projections = false;
  config.use_hard_g2l_mask = true;
  if (name == "tiny") {  // for demonstrations and tests: minutes on a laptop
    config.hidden_size = 64;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 4;
    config.intermediate_size = 256;
    config.local_radius = 16;
  } else if (name == "small") {  // the sizes of RealFormer's Small
    config.hidden_size = 512;
    config.num_hidden_layers = 4;
    config.num_attention_heads = 8;
    config.intermediate_size = 2048;
  } else if (name == "large") {
    config.hidden_size = 1024;
    config.num_hidden_layers = 24;
    config.num_attention_heads = 16;
    config.intermediate_size = 4096;
    config.local_radius = 169;
    config.relative_pos_max_distance = 24;
    config.relative_vocab_size = 64;
  } else if (name != "base") {
    fail_usage("config", "preset: expected one of {}, got \"{}\"{}", known(kPresets), name, suggestion(name, kPresets));
  }
  return config;
}

}  // namespace etc
