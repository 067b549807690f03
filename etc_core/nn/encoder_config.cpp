#include "etc_core/nn/encoder_config.h"

#include <algorithm>
#include <numeric>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/words.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/seq2seq/config.h"

namespace etc {

void EncoderConfig::keep_layers(std::int64_t layers) {
  num_hidden_layers = std::min(layers, num_hidden_layers);
}

std::int64_t EncoderConfig::head_size() const {
  return att_size_per_head ? *att_size_per_head : hidden_size / num_attention_heads;
}

std::int64_t EncoderConfig::attention_size() const {
  return num_attention_heads * head_size();
}

std::int64_t EncoderConfig::embedding_width() const {
  return embedding_size.value_or(hidden_size);
}

void warn_of_unread_keys(const EncoderConfig& config) {
  const std::vector<std::string> keys = config.unread_keys();
  if (keys.empty()) return;
  const Json values = config.to_json();
  for (const std::string& key : keys) {
    log::warn("{}: {} changes nothing: relative_positions {} does not read it", key, json_line(values.at(key)),
              values.at("relative_positions").get<std::string>());
  }
}

sparse::AttentionLabels EncoderConfig::labels(std::vector<sparse::AttentionStructure> structures,
                                              GlobalAttention global) const {
  std::optional<sparse::LabelOptions> options = label_options();
  if (!options) return {};
  if (global == GlobalAttention::full) return sparse::build_labels(structures, *options);
  for (sparse::AttentionStructure& structure : structures) {
    std::iota(structure.global_segments.begin(), structure.global_segments.end(), 0);  // each alone
    structure.ignore_hard_g2l.clear();
  }
  options->use_hard_g2l_mask = true;
  sparse::AttentionLabels labels = sparse::build_labels(structures, *options);
  std::fill(labels.l2g.begin(), labels.l2g.end(), sparse::kMasked);
  return labels;
}

ModelConfig::ModelConfig() : config_(std::make_unique<EtcConfig>()) {}

void check_keys(const Json& json, const Fields& fields, UnknownKeys unknown, const std::string& where) {
  if (!json.is_object()) fail_usage(where, "expected an object of model fields, got {}", json.type_name());
  for (const auto& [key, value] : json.items()) {
    if (fields.find(key) != nullptr) continue;
    if (unknown == UnknownKeys::refuse) fail_usage(where, "unknown key {}{}", key, suggestion(key, fields.names()));
    log::warn("{}: unknown key {} is ignored", where, key);
  }
}

const std::vector<ModelKind>& model_kinds() {
  static const std::vector<ModelKind> kKinds = {
      {"etc", EtcConfig(),
       [](const Json& fields, const std::string& where, UnknownKeys unknown) {
         return ModelConfig(etc_config_from_json(fields, where, unknown));
       }},
      {"dense", DenseConfig(),
       [](const Json& fields, const std::string& where, UnknownKeys unknown) {
         return ModelConfig(dense_config_from_json(fields, where, unknown));
       }},
      {"seq2seq", Seq2SeqConfig(),
       [](const Json& fields, const std::string& where, UnknownKeys unknown) {
         return ModelConfig(seq2seq_config_from_json(fields, where, unknown));
       }},
  };
  return kKinds;
}

std::vector<std::string> model_kind_names() {
  std::vector<std::string> names;
  for (const ModelKind& kind : model_kinds()) names.push_back(kind.name);
  return names;
}

const ModelKind& model_kind(const std::string& name, const std::string& where) {
  for (const ModelKind& kind : model_kinds()) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = model_kind_names();
  fail_usage(where, "kind: expected {}, got {}{}", fmt::join(names, " or "), name, suggestion(name, names));
}

std::string model_kind_of(const Json& section) {
  const Json kind = section.is_object() ? section.value("kind", Json(model_kinds().front().name)) : Json("");
  return kind.is_string() ? kind.get<std::string>() : json_line(kind);
}

ModelConfig model_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown) {
  if (!json.is_object()) return model_kinds().front().read(json, where, unknown);
  Json fields = json;
  fields.erase("kind");
  return model_kind(model_kind_of(json), where).read(fields, where, unknown);
}

namespace {
constexpr std::string_view kDensePrefix = "dense-";
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names = etc_preset_names();
  for (const std::string& name : dense_preset_names()) names.push_back(std::string(kDensePrefix) + name);
  return names;
}

ModelConfig model_preset(const std::string& name) {
  const std::vector<std::string> names = model_preset_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    fail_usage("config", "preset: expected one of {}, got \"{}\"{}", fmt::join(names, ", "), name,
               suggestion(name, names));
  }
  if (!name.starts_with(kDensePrefix)) return etc_config_preset(name);
  return dense_config_preset(name.substr(kDensePrefix.size()));
}

}  // namespace etc
