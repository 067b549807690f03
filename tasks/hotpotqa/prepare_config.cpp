#include "tasks/hotpotqa/prepare_config.h"

#include <limits>
#include <string_view>

namespace etc::hotpotqa {

SpecialIds published_special_ids(bool sentencepiece) {
  return sentencepiece ? SpecialIds{0, 40, 1, 41, 43} : SpecialIds{0, 101, 1, 3, 5};
}

const FieldList<PrepareConfig>& prepare_settings() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  constexpr double kMostGlobal = std::numeric_limits<std::int16_t>::max();  // global indices are stored in 16 bits
  static const FieldList<PrepareConfig> kSettings{
      {"long_seq_len", &PrepareConfig::long_seq_len, "most long tokens of an example (L)", {.least = 1, .most = kMost}},
      {"global_seq_len",
       &PrepareConfig::global_seq_len,
       "most global tokens of an example (G)",
       {.least = 1, .most = kMostGlobal}},
      {"is_training", &PrepareConfig::is_training,
       "drop records whose labels cannot be trained on; false keeps every record, for dev and test"},
      text::parity_entry<PrepareConfig>(text::kParityHelp),
      text::tokenizer_entry<PrepareConfig>(),
      {"do_lower_case", &PrepareConfig::do_lower_case, "WordPiece: lower-case the text"},
      {"special_ids", &PrepareConfig::given_special_ids,
       "vocabulary ids of the tokens without text, e.g. {\"question\": 3}"},
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, bool labels_required) {
  PrepareConfig config = prepare_settings().read(settings, "etc prepare");
  config.labels_required = labels_required;
  return config;
}

void resolve_special_ids(PrepareConfig& config, const data::Tokenizer& tokenizer) {
  const bool sentencepiece = tokenizer.kind() == std::string_view("sentencepiece");
  const Json ids = text::special_ids(config.given_special_ids, json_of(published_special_ids(sentencepiece)),
                                     tokenizer.vocab_size());
  config.special_ids = {ids.at("pad"), ids.at("cls"), ids.at("sentence"), ids.at("question"), ids.at("paragraph")};
}

Json json_of(const SpecialIds& ids) {
  return {{"pad", ids.pad},
          {"cls", ids.cls},
          {"sentence", ids.sentence},
          {"question", ids.question},
          {"paragraph", ids.paragraph}};
}

}  // namespace etc::hotpotqa
