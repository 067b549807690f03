#include "etc_core/nn/encoder.h"

#include <algorithm>
#include <numeric>

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/etc_config.h"

namespace etc {

Tensor ExternalScores::of(std::string_view type) const {
  for (const auto& [name, scores] : scores_) {
    if (name == type) return scores;
  }
  return {};
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

ModelConfig model_config_from_json(const Json& json, const std::string& where, UnknownKeys unknown) {
  if (!json.is_object() || !json.contains("kind")) return etc_config_from_json(json, where, unknown);
  const std::string kind = json["kind"].is_string() ? json["kind"].get<std::string>() : json_line(json["kind"]);
  Json fields = json;
  fields.erase("kind");
  if (kind == "etc") return etc_config_from_json(fields, where, unknown);
  if (kind == "dense") return dense_config_from_json(fields, where, unknown);
  fail_usage(where, "kind: expected etc or dense, got {}{}", kind, suggestion(kind, {"etc", "dense"}));
}

ModelConfig model_preset(const std::string& name) {
  return etc_config_preset(name);
}

}  // namespace etc
