#include "data/text/tokenizer_json.h"

#include <string_view>

#include "data/text/byte_bpe.h"
#include "etc_core/base/json.h"

namespace etc::data {

namespace {

// The package lower-cases characters one by one, so a capital sigma at a word's end is replaced by its final form
// first.
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

Json pieces_by_name(const Tokenizer& tokenizer) {
  Json vocab = Json::object();
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) vocab[tokenizer.piece(id)] = id;
  return vocab;
}

Json wordpiece_parts(const Tokenizer& tokenizer) {
  constexpr int kLongestWord = 200;  // characters (wordpiece_vocab.h)
  return {{"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers(tokenizer.lower_case())}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", kLongestWord},
            {"vocab", pieces_by_name(tokenizer)}}}};
}

Json byte_bpe_parts(const ByteBpe& tokenizer) {
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  Json merges = Json::array();
  for (const auto& [first, second] : tokenizer.merges()) merges.push_back(first + " " + second);
  return {{"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", pieces_by_name(tokenizer)},
            {"merges", std::move(merges)}}}};
}

}  // namespace

std::string tokenizer_json(const Tokenizer& tokenizer) {
  const auto* const byte_bpe = dynamic_cast<const ByteBpe*>(&tokenizer);
  if (byte_bpe == nullptr && tokenizer.kind() != std::string_view("wordpiece")) return "";
  Json file = byte_bpe != nullptr ? byte_bpe_parts(*byte_bpe) : wordpiece_parts(tokenizer);
  file.update({{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", Json::array()},
               {"post_processor", nullptr}});
  return json_line(file) + "\n";
}

}  // namespace etc::data
