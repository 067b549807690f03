#include "tasks/wikihop/prepare_config.h"

#include <limits>

#include "etc_core/base/error.h"

namespace etc::wikihop {

namespace {

constexpr const char* kWhere = "etc prepare";

std::int64_t integer_setting(const Json& settings, const char* key, std::int64_t least, std::int64_t most) {
  const Json& value = settings.at(key);
  const bool fits = value.is_number_integer() && value <= most && value >= least;
  if (!fits) fail_usage(kWhere, "{}: expected an integer from {} to {}, got {}", key, least, most, json_line(value));
  return value.get<std::int64_t>();
}

SpecialIds read_special_ids(const Json& overrides) {
  Json merged = json_of({});
  std::vector<std::string> names;
  for (const auto& [name, value] : merged.items()) names.push_back(name);
  for (const auto& [name, value] : overrides.items()) {
    if (!merged.contains(name)) {
      fail_usage(kWhere, "special_ids: unknown key {}{}", name, suggestion(name, names));
    }
    merged[name] = value;
  }
  const auto id = [&](const char* name) {
    return static_cast<std::int32_t>(integer_setting(merged, name, 0, std::numeric_limits<std::int32_t>::max()));
  };
  return {id("pad"), id("sentence"), id("question"), id("candidate"), id("paragraph")};
}

Parity read_parity(const std::string& name) {
  if (name == "reference") return Parity::reference;
  if (name == "repaired") return Parity::repaired;
  fail_usage(kWhere, "parity: expected reference or repaired, got {}{}", name,
             suggestion(name, {"reference", "repaired"}));
}

}  // namespace

const std::vector<prepare::Setting>& prepare_settings() {
  static const std::vector<prepare::Setting> kSettings{
      {"long_seq_len", 4096, "most long tokens of an example (L)"},
      {"global_seq_len", 430, "most global tokens of an example (G)"},
      {"max_num_sentences", 200, "most sentences of an example"},
      {"parity", "repaired", "reference: the published preparation with its quirks; repaired: without"},
      {"tokenizer", "", "wordpiece or sentencepiece, checked against the vocabulary; empty: by its file name"},
      {"do_lower_case", true, "WordPiece: lower-case the text (WikiHop needs it)"},
      {"splitter", "icu", "sentence splitter: icu, or punkt:DIR with the Punkt tables in DIR"},
      {"special_ids", Json::object(), "vocabulary ids of the global tokens, e.g. {\"question\": 3}"},
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, bool labels_required) {
  PrepareConfig config;
  config.long_seq_len = integer_setting(settings, "long_seq_len", 1, std::numeric_limits<std::int32_t>::max());
  // Global indices are stored in 16 bits.
  config.global_seq_len = integer_setting(settings, "global_seq_len", 1, std::numeric_limits<std::int16_t>::max());
  config.max_num_sentences =
      integer_setting(settings, "max_num_sentences", 0, std::numeric_limits<std::int32_t>::max());
  config.parity = read_parity(word_setting(settings, "parity"));
  config.special_ids = read_special_ids(settings.at("special_ids"));
  config.labels_required = labels_required;
  return config;
}

std::string word_setting(const Json& settings, const char* key) {
  const Json& value = settings.at(key);
  if (!value.is_string()) fail_usage(kWhere, "{}: expected a word, got {}", key, json_line(value));
  return value.get<std::string>();
}

Json json_of(const SpecialIds& ids) {
  return {{"pad", ids.pad},
          {"sentence", ids.sentence},
          {"question", ids.question},
          {"candidate", ids.candidate},
          {"paragraph", ids.paragraph}};
}

const char* parity_name(Parity parity) {
  return parity == Parity::reference ? "reference" : "repaired";
}

}  // namespace etc::wikihop
