#include "tasks/text/settings.h"

#include <limits>

#include "etc_core/base/error.h"

namespace etc::text {

namespace {

constexpr const char* kWhere = "etc prepare";

}  // namespace

const char* parity_name(Parity parity) {
  return parity == Parity::reference ? "reference" : "repaired";
}

std::int64_t integer_setting(const Json& settings, const char* key, std::int64_t least, std::int64_t most) {
  const Json& value = settings.at(key);
  const bool fits = value.is_number_integer() && value <= most && value >= least;
  if (!fits) fail_usage(kWhere, "{}: expected an integer from {} to {}, got {}", key, least, most, json_line(value));
  return value.get<std::int64_t>();
}

double real_setting(const Json& settings, const char* key, double least, double most) {
  const Json& value = settings.at(key);
  const bool fits = value.is_number() && value >= least && value <= most;
  if (!fits) fail_usage(kWhere, "{}: expected a number from {} to {}, got {}", key, least, most, json_line(value));
  return value.get<double>();
}

bool flag_setting(const Json& settings, const char* key) {
  const Json& value = settings.at(key);
  if (!value.is_boolean()) fail_usage(kWhere, "{}: expected true or false, got {}", key, json_line(value));
  return value.get<bool>();
}

std::string word_setting(const Json& settings, const char* key) {
  const Json& value = settings.at(key);
  if (!value.is_string()) fail_usage(kWhere, "{}: expected a word, got {}", key, json_line(value));
  return value.get<std::string>();
}

Parity parity_setting(const Json& settings) {
  const std::string name = word_setting(settings, "parity");
  if (name == "reference") return Parity::reference;
  if (name == "repaired") return Parity::repaired;
  fail_usage(kWhere, "parity: expected reference or repaired, got {}{}", name,
             suggestion(name, {"reference", "repaired"}));
}

Json special_ids(const Json& settings, const Json& defaults, std::int32_t vocab_size) {
  const Json& overrides = settings.at("special_ids");
  if (!overrides.is_object()) fail_usage(kWhere, "special_ids: expected an object, got {}", json_line(overrides));
  std::vector<std::string> names;
  for (const auto& [name, id] : defaults.items()) names.push_back(name);
  Json merged = defaults;
  for (const auto& [name, id] : overrides.items()) {
    if (!merged.contains(name)) fail_usage(kWhere, "special_ids: unknown key {}{}", name, suggestion(name, names));
    merged[name] = id;
  }
  for (const auto& [name, id] : merged.items()) {
    if (id.is_number_integer() && id >= 0 && id < vocab_size) continue;
    fail_usage(kWhere,
               "special_ids: {}: expected an id below the vocabulary's {}, got {} (use a vocabulary with reserved "
               "entries at the front, or set special_ids)",
               name, vocab_size, json_line(id));
  }
  return merged;
}

void require_tokenizer(const Json& settings, const std::string& kind, const std::string& vocab) {
  const std::string wanted = word_setting(settings, "tokenizer");
  if (wanted.empty() || wanted == kind) return;
  fail_usage(kWhere, "tokenizer: expected {}, but {} is a {} vocabulary (*.model is SentencePiece, others WordPiece)",
             wanted, vocab, kind);
}

}  // namespace etc::text
