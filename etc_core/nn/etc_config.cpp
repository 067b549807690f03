#include "etc_core/nn/etc_config.h"

#include <algorithm>
#include <limits>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"

namespace etc {

namespace {

// Products of two sizes, times the layers, stay far inside int64: a hostile configuration must not overflow a count.
constexpr std::int64_t kMaxSize = 1 << 24;
constexpr std::int64_t kMaxLayers = 1000;
constexpr std::int64_t kMaxLabels = 255;  // one byte, 255 itself means masked

const std::vector<std::string> kActivations = {"gelu", "relu", "tanh", "linear"};
const std::vector<std::string> kAttentionTypes = {"l2l", "l2g", "g2g", "g2l"};
const std::vector<std::string> kPresets = {"tiny", "small", "base", "large"};

// The one list of keys: visit(key, member) for every field.
template <typename Config, typename Visit>
void visit_fields(Config& config, Visit&& visit) {
  visit("vocab_size", config.vocab_size);
  visit("segment_vocab_size", config.segment_vocab_size);
  visit("embedding_size", config.embedding_size);
  visit("hidden_size", config.hidden_size);
  visit("num_hidden_layers", config.num_hidden_layers);
  visit("num_attention_heads", config.num_attention_heads);
  visit("local_radius", config.local_radius);
  visit("att_size_per_head", config.att_size_per_head);
  visit("relative_pos_max_distance", config.relative_pos_max_distance);
  visit("relative_vocab_size", config.relative_vocab_size);
  visit("max_absolute_position_embeddings", config.max_absolute_position_embeddings);
  visit("intermediate_size", config.intermediate_size);
  visit("hidden_act", config.hidden_act);
  visit("hidden_dropout_prob", config.hidden_dropout_prob);
  visit("attention_probs_dropout_prob", config.attention_probs_dropout_prob);
  visit("initializer_range", config.initializer_range);
  visit("share_feed_forward_params", config.share_feed_forward_params);
  visit("share_kv_projections", config.share_kv_projections);
  visit("share_qkv_projections", config.share_qkv_projections);
  visit("share_att_output_projection", config.share_att_output_projection);
  visit("use_pre_activation_order", config.use_pre_activation_order);
  visit("use_hard_g2l_mask", config.use_hard_g2l_mask);
  visit("use_hard_l2g_mask", config.use_hard_l2g_mask);
  visit("grad_checkpointing_period", config.grad_checkpointing_period);
  visit("use_residual_attention", config.use_residual_attention);
  visit("use_running_mean", config.use_running_mean);
  visit("residual_attention_types", config.residual_attention_types);
}

// Reads one JSON value into a field; every failure names file, key, expected type and what was there.
struct FieldReader {
  const std::string& where;
  const char* key;
  const Json& json;

  [[noreturn]] void wrong(const char* expected) const {
    fail_usage(where, "{}: expected {}, got {}", key, expected, json_line(json));
  }
  void read(std::int64_t& field) const {
    // vocab_size is null in an object that was never filled in; validate() then asks for it.
    if (json.is_null() && std::string_view(key) == "vocab_size") {
      field = 0;
    } else if (!json.is_number_integer() ||
               (json.is_number_unsigned() &&
                json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))) {
      wrong("an integer");
    } else {
      field = json.get<std::int64_t>();
    }
  }
  void read(std::optional<std::int64_t>& field) const {
    field.reset();
    if (!json.is_null()) read(field.emplace());
  }
  void read(double& field) const {
    if (!json.is_number()) wrong("a number");
    field = json.get<double>();
  }
  void read(bool& field) const {
    if (!json.is_boolean()) wrong("true or false");
    field = json.get<bool>();
  }
  void read(std::string& field) const {
    if (json.is_null() && std::string_view(key) == "hidden_act") {
      field = "linear";  // etc-core 6.3: null is the identity
    } else if (!json.is_string()) {
      wrong("a string");
    } else {
      field = json.get<std::string>();
    }
  }
  void read(std::vector<std::string>& field) const {
    if (!json.is_array()) wrong("a list of strings");
    field.clear();
    for (const Json& entry : json) {
      if (!entry.is_string()) wrong("a list of strings");
      field.push_back(entry.get<std::string>());
    }
  }
};

template <typename T>
Json to_value(const T& field) {
  return Json(field);
}
Json to_value(const std::optional<std::int64_t>& field) {
  return field ? Json(*field) : Json(nullptr);
}

std::string known(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_size(const char* field, std::int64_t value, std::int64_t least, std::int64_t most = kMaxSize) {
  if (value < least || value > most) fail_usage("config", "{}: expected {} … {}, got {}", field, least, most, value);
}

void check_rate(const char* field, double value) {
  if (!(value >= 0 && value < 1)) fail_usage("config", "{}: expected 0 <= rate < 1, got {}", field, value);
}

}  // namespace

const std::vector<std::string>& EtcConfig::attention_types() const {
  return kAttentionTypes;
}

std::optional<sparse::LabelOptions> EtcConfig::label_options() const {
  return sparse::LabelOptions{local_radius, relative_pos_max_distance, use_hard_g2l_mask, use_hard_l2g_mask};
}

void EtcConfig::validate() const {
  check_size("vocab_size", vocab_size, 1);
  check_size("segment_vocab_size", segment_vocab_size, 1);
  check_size("hidden_size", hidden_size, 1);
  check_size("embedding_size", embedding_width(), 1);
  check_size("num_hidden_layers", num_hidden_layers, 1, kMaxLayers);
  check_size("num_attention_heads", num_attention_heads, 1);
  check_size("local_radius", local_radius, 1);
  check_size("relative_pos_max_distance", relative_pos_max_distance, 0);
  check_size("max_absolute_position_embeddings", max_absolute_position_embeddings, 0);
  check_size("intermediate_size", intermediate_size, 1);
  if (att_size_per_head) {
    check_size("att_size_per_head", *att_size_per_head, 1);
    check_size("num_attention_heads * att_size_per_head", attention_size(), 1);
  } else if (hidden_size % num_attention_heads != 0) {
    fail_usage("config",
               "hidden_size: expected a multiple of num_attention_heads={}, got {} (or set att_size_per_head)",
               num_attention_heads, hidden_size);
  }
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
  std::string activation = hidden_act;
  std::transform(activation.begin(), activation.end(), activation.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  if (!activation.empty() && std::find(kActivations.begin(), kActivations.end(), activation) == kActivations.end()) {
    fail_usage("config", "hidden_act: expected one of {}, got \"{}\"{}", known(kActivations), hidden_act,
               suggestion(activation, kActivations));
  }
  check_rate("hidden_dropout_prob", hidden_dropout_prob);
  check_rate("attention_probs_dropout_prob", attention_probs_dropout_prob);
  if (!(initializer_range >= 0 && initializer_range <= 1e6)) {
    fail_usage("config", "initializer_range: expected a standard deviation >= 0, got {}", initializer_range);
  }
  std::set<std::string> seen;
  for (const std::string& type : residual_attention_types) {
    if (std::find(kAttentionTypes.begin(), kAttentionTypes.end(), type) == kAttentionTypes.end()) {
      fail_usage("config", "residual_attention_types: expected some of {}, got \"{}\"{}", known(kAttentionTypes), type,
                 suggestion(type, kAttentionTypes));
    }
    if (!seen.insert(type).second) fail_usage("config", "residual_attention_types: \"{}\" is listed twice", type);
  }
}

Json EtcConfig::to_json() const {
  Json json = Json::object();
  visit_fields(*this, [&](const char* key, const auto& field) { json[key] = to_value(field); });
  return json;
}

EtcConfig etc_config_from_json(const Json& json, const std::string& where, bool strict) {
  if (!json.is_object()) fail_usage(where, "expected an object of model fields, got {}", json.type_name());
  EtcConfig config;
  std::vector<std::string> keys;
  visit_fields(config, [&](const char* key, auto& field) {
    keys.push_back(key);
    if (const auto found = json.find(key); found != json.end()) FieldReader{where, key, *found}.read(field);
  });
  for (const auto& [key, value] : json.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    if (strict) fail_usage(where, "unknown key {}{}", key, suggestion(key, keys));
    log::warn("{}: unknown key {} is ignored", where, key);
  }
  return config;
}

EtcConfig etc_config_preset(const std::string& name) {
  EtcConfig config;  // base: the class defaults but for what etc-core 2.3 says of the released models
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
