#include "tasks/wikihop/prepare_config.h"

#include <limits>

#include "tasks/text/special_pieces.h"

namespace etc::wikihop {

const FieldList<PrepareConfig>& prepare_settings() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  static const FieldList<PrepareConfig> kSettings{
      text::long_seq_len_entry<PrepareConfig>(),
      text::global_seq_len_entry<PrepareConfig>(),
      {"max_num_sentences",
       &PrepareConfig::max_num_sentences,
       "most sentences of an example",
       {.least = 0, .most = kMost}},
      text::parity_entry<PrepareConfig>(text::kParityHelp),
      text::tokenizer_entry<PrepareConfig>(),
      text::lower_case_entry<PrepareConfig>("WordPiece: lower-case the text (WikiHop needs it)"),
      {"splitter", &PrepareConfig::splitter, "sentence splitter: icu, or punkt:DIR with the Punkt tables in DIR"},
      text::special_ids_entry<PrepareConfig>("vocabulary ids of the global tokens, e.g. {\"question\": 3}"),
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels) {
  return text::read_settings(prepare_settings(), settings, labels);
}

void resolve_special_ids(PrepareConfig& config, const data::Tokenizer& tokenizer) {
  SpecialIds usual;
  if (text::is_byte_bpe(tokenizer)) {
    usual = {text::special_id(tokenizer, text::kPadPiece), usual.sentence, tokenizer.piece_id(text::kByteQuestion),
             tokenizer.piece_id(text::kByteCandidate), tokenizer.piece_id(text::kByteParagraph)};
  }
  const Json ids = text::special_ids(config.given_special_ids, json_of(usual), tokenizer.vocab_size());
  config.special_ids = {ids.at("pad"), ids.at("sentence"), ids.at("question"), ids.at("candidate"),
                        ids.at("paragraph")};
}

Json json_of(const SpecialIds& ids) {
  return {{"pad", ids.pad},
          {"sentence", ids.sentence},
          {"question", ids.question},
          {"candidate", ids.candidate},
          {"paragraph", ids.paragraph}};
}

}  // namespace etc::wikihop
