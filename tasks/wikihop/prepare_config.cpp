#include "tasks/wikihop/prepare_config.h"

#include <limits>

#include "etc_core/base/error.h"

namespace etc::wikihop {

namespace {

constexpr const char* kWhere = "etc prepare";

SpecialIds read_special_ids(const Json& overrides) {
  if (!overrides.is_object()) fail_usage(kWhere, "special_ids: expected an object, got {}", json_line(overrides));
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
    const Json& value = merged.at(name);
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (!value.is_number_integer() || value < 0 || value > kMost) {
      fail_usage(kWhere, "special_ids: {}: expected an integer from 0 to {}, got {}", name, kMost, json_line(value));
    }
    return value.get<std::int32_t>();
  };
  return {id("pad"), id("sentence"), id("question"), id("candidate"), id("paragraph")};
}

}  // namespace

const FieldList<PrepareConfig>& prepare_settings() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  constexpr double kMostGlobal = std::numeric_limits<std::int16_t>::max();  // global indices are stored in 16 bits
  static const FieldList<PrepareConfig> kSettings{
      {"long_seq_len", &PrepareConfig::long_seq_len, "most long tokens of an example (L)", {.least = 1, .most = kMost}},
      {"global_seq_len",
       &PrepareConfig::global_seq_len,
       "most global tokens of an example (G)",
       {.least = 1, .most = kMostGlobal}},
      {"max_num_sentences",
       &PrepareConfig::max_num_sentences,
       "most sentences of an example",
       {.least = 0, .most = kMost}},
      text::parity_entry<PrepareConfig>(text::kParityHelp),
      text::tokenizer_entry<PrepareConfig>(),
      {"do_lower_case", &PrepareConfig::do_lower_case, "WordPiece: lower-case the text (WikiHop needs it)"},
      {"splitter", &PrepareConfig::splitter, "sentence splitter: icu, or punkt:DIR with the Punkt tables in DIR"},
      {"special_ids", &PrepareConfig::given_special_ids, "vocabulary ids of the global tokens, e.g. {\"question\": 3}"},
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, bool labels_required) {
  PrepareConfig config = prepare_settings().read(settings, kWhere);
  config.special_ids = read_special_ids(config.given_special_ids);
  config.labels_required = labels_required;
  return config;
}

Json json_of(const SpecialIds& ids) {
  return {{"pad", ids.pad},
          {"sentence", ids.sentence},
          {"question", ids.question},
          {"candidate", ids.candidate},
          {"paragraph", ids.paragraph}};
}

}  // namespace etc::wikihop
