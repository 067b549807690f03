#include "tasks/hotpotqa/prepare_config.h"

#include <limits>
#include <string_view>

namespace etc::hotpotqa {

SpecialIds published_special_ids(bool sentencepiece) {
  return sentencepiece ? SpecialIds{0, 40, 1, 41, 43} : SpecialIds{0, 101, 1, 3, 5};
}

const std::vector<prepare::Setting>& prepare_settings() {
  static const std::vector<prepare::Setting> kSettings{
      {"long_seq_len", 4096, "most long tokens of an example (L)"},
      {"global_seq_len", 256, "most global tokens of an example (G)"},
      {"is_training", true,
       "drop records whose labels cannot be trained on; false keeps every record, for dev and test"},
      {"parity", "repaired", "reference: the published preparation with its quirks; repaired: without"},
      {"tokenizer", "", "wordpiece or sentencepiece, checked against the vocabulary; empty: by its file name"},
      {"do_lower_case", true, "WordPiece: lower-case the text"},
      {"special_ids", Json::object(), "vocabulary ids of the tokens without text, e.g. {\"question\": 3}"},
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, const data::Tokenizer& tokenizer, bool labels_required) {
  PrepareConfig config;
  config.long_seq_len = text::integer_setting(settings, "long_seq_len", 1, std::numeric_limits<std::int32_t>::max());
  // Global indices are stored in 16 bits.
  config.global_seq_len =
      text::integer_setting(settings, "global_seq_len", 1, std::numeric_limits<std::int16_t>::max());
  config.is_training = text::flag_setting(settings, "is_training");
  config.parity = text::parity_setting(settings);
  const bool sentencepiece = tokenizer.kind() == std::string_view("sentencepiece");
  const Json ids = text::special_ids(settings, json_of(published_special_ids(sentencepiece)), tokenizer.vocab_size());
  config.special_ids = {ids.at("pad"), ids.at("cls"), ids.at("sentence"), ids.at("question"), ids.at("paragraph")};
  config.labels_required = labels_required;
  return config;
}

Json json_of(const SpecialIds& ids) {
  return {{"pad", ids.pad},
          {"cls", ids.cls},
          {"sentence", ids.sentence},
          {"question", ids.question},
          {"paragraph", ids.paragraph}};
}

}  // namespace etc::hotpotqa
