#include "tasks/hotpotqa/prepare_config.h"

#include "tasks/text/special_pieces.h"

namespace etc::hotpotqa {

namespace {

SpecialIds byte_special_ids(const data::Tokenizer& tokenizer) {
  return {text::special_id(tokenizer, text::kPadPiece), text::special_id(tokenizer, text::kClsPiece), 1,
          tokenizer.piece_id(text::kByteQuestion), tokenizer.piece_id(text::kByteParagraph)};
}

}  // namespace

SpecialIds published_special_ids(bool sentencepiece) {
  return sentencepiece ? SpecialIds{0, 40, 1, 41, 43} : SpecialIds{0, 101, 1, 3, 5};
}

const FieldList<PrepareConfig>& prepare_settings() {
  static const FieldList<PrepareConfig> kSettings{
      text::long_seq_len_entry<PrepareConfig>(),
      text::global_seq_len_entry<PrepareConfig>(),
      {"is_training", &PrepareConfig::is_training,
       "drop records whose labels cannot be trained on; false keeps every record, for dev and test"},
      text::parity_entry<PrepareConfig>(text::kParityHelp),
      text::tokenizer_entry<PrepareConfig>(),
      text::lower_case_entry<PrepareConfig>(),
      text::special_ids_entry<PrepareConfig>("vocabulary ids of the tokens without text, e.g. {\"question\": 3}"),
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels) {
  return text::read_settings(prepare_settings(), settings, labels);
}

void resolve_special_ids(PrepareConfig& config, const data::Tokenizer& tokenizer) {
  const SpecialIds usual = text::is_byte_bpe(tokenizer) ? byte_special_ids(tokenizer)
                                                        : published_special_ids(text::is_sentencepiece(tokenizer));
  const Json ids = text::special_ids(config.given_special_ids, json_of(usual), tokenizer.vocab_size());
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
