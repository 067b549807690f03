#include "data/text/tokenizer_json.h"

#include <string_view>

#include "etc_core/base/json.h"

namespace etc::data {

namespace {

// The package lower-cases characters one by one; a capital sigma at a word's end must be its final form before.
Json normalizers(bool lower_case) {
  Json steps = Json::array();
  if (lower_case)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", "(?<=\\p{L})Σ(?!\\p{L})"}}}, {"content", "ς"}});
  steps.push_back({{"type", "BertNormalizer"},
                   {"clean_text", true},
                   {"handle_chinese_chars", true},
                   {"strip_accents", nullptr},
                   {"lowercase", lower_case}});
  return steps;
}

}  // namespace

std::string tokenizer_json(const Tokenizer& tokenizer) {
  if (tokenizer.kind() != std::string_view("wordpiece")) return "";
  constexpr int kLongestWord = 200;  // characters (wordpiece_vocab.h)
  Json vocab = Json::object();
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) vocab[tokenizer.piece(id)] = id;
  const Json file = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", Json::array()},
                     {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers(tokenizer.lower_case())}}},
                     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                     {"post_processor", nullptr},
                     {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                     {"model",
                      {{"type", "WordPiece"},
                       {"unk_token", "[UNK]"},
                       {"continuing_subword_prefix", "##"},
                       {"max_input_chars_per_word", kLongestWord},
                       {"vocab", std::move(vocab)}}}};
  return json_line(file) + "\n";
}

}  // namespace etc::data
