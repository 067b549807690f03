// Equality with the reference data preparation: every case of every tokenization and Punkt file in the golden folder.
#include <map>

#include "data/text/basic_tokenizer.h"
#include "data/text/sentence_splitter.h"
#include "data/text/sentencepiece.h"
#include "data/text/tokenizer.h"
#include "data/text/unicode.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
namespace fs = std::filesystem;

namespace {

// The JSON files of the golden folder whose name contains `part`.
std::vector<fs::path> files_named(const std::string& part) {
  std::vector<fs::path> files;
  for (const fs::path& file : test::golden_files(".json")) {
    if (file.filename().string().find(part) != std::string::npos) files.push_back(file);
  }
  return files;
}

// Tokenizers of the real vocabularies, loaded once; nullptr where the file is missing.
class Vocabularies {
 public:
  explicit Vocabularies(const Json& head) : head_(head) {}

  const data::Tokenizer* get(const std::string& file, bool lower_case) {
    auto& slot = loaded_[file + (lower_case ? " lower" : " cased")];
    if (!slot) {
      const auto folder = test::real_data_folder();
      if (!folder || !fs::exists(*folder / "vocab" / file)) {
        test::skip("no vocabulary " + file);
        return nullptr;
      }
      slot = data::load_tokenizer(*folder / "vocab" / file, {.do_lower_case = lower_case});
      if (const auto& known = head_.at("vocabularies"); known.contains(file)) {
        REQUIRE(slot->vocab_sha256() == known.at(file).get<std::string>());
      }
    }
    return slot.get();
  }

 private:
  const Json& head_;
  std::map<std::string, std::unique_ptr<data::Tokenizer>> loaded_;
};

void check_tokens(const data::Tokenizer& tokenizer, const std::string& text, const Json& expected) {
  const data::Tokens tokens = tokenizer.encode(text);
  CHECK(Json(tokens.ids) == expected.at("ids"));
  CHECK(tokenizer.encode_ids(text) == tokens.ids);
  if (expected.contains("pieces")) CHECK(Json(tokens.pieces) == expected.at("pieces"));
}

void check_wordpiece(Vocabularies& vocabularies, const std::string& text, const Json& one_case) {
  for (const bool lower : {true, false}) {
    const Json& expected = one_case.at(lower ? "wordpiece_lower" : "wordpiece_cased");
    CHECK(Json(data::basic_tokenize(text, lower)) == expected.at("basic"));
    const data::Tokenizer* bert = vocabularies.get("bert_uncased_vocab.txt", lower);
    if (bert != nullptr) check_tokens(*bert, text, expected);
  }
  const Json& lower = one_case.at("wordpiece_lower");
  const data::Tokenizer* nq = vocabularies.get("nq_bert_vocab.txt", true);
  if (nq != nullptr) check_tokens(*nq, text, one_case.value("wordpiece_lower_nq_vocab", lower));
}

void check_sentencepiece(Vocabularies& vocabularies, const std::string& text, const Json& one_case) {
  for (const auto& [model, expected] : one_case.at("sentencepiece").items()) {
    CAPTURE(model);
    const data::Tokenizer* tokenizer = vocabularies.get(model + ".model", false);
    if (tokenizer == nullptr) continue;
    check_tokens(*tokenizer, text, expected);
    const data::DetokenizedText joined = data::detokenize(tokenizer->encode(text).pieces);
    CHECK(joined.text == expected.at("detokenized").get<std::string>());
    CHECK(Json(joined.char_to_token) == expected.at("chars_to_tokens"));
  }
}

}  // namespace

TEST_CASE("tokenizers equal the reference on every golden string", "[data][text][golden]") {
  const auto files = files_named("tokenization");
  if (files.empty()) return test::skip("no golden file *tokenization*.json");
  for (const fs::path& file : files) {
    const Json golden = read_json_file(file);
    Vocabularies vocabularies(golden.at("head"));
    for (const Json& one_case : golden.at("cases")) {
      const auto text = one_case.at("text").get<std::string>();
      CAPTURE(file.filename().string(), text);
      check_wordpiece(vocabularies, text, one_case);
      check_sentencepiece(vocabularies, text, one_case);
    }
  }
}

TEST_CASE("Punkt equals NLTK 3.5 on every golden text", "[data][text][golden]") {
  const auto files = files_named("punkt_sentences");
  const auto folder = test::real_data_folder();
  if (files.empty()) return test::skip("no golden file *punkt_sentences*.json");
  if (!folder) return test::skip("no Punkt tables");
  const auto punkt = data::load_splitter("punkt:" + (*folder / "punkt_english").string());
  for (const fs::path& file : files) {
    const Json golden = read_json_file(file);
    for (const auto& [group, cases] : golden.items()) {
      if (!cases.is_array()) continue;
      for (const Json& one_case : cases) {
        const auto text = one_case.at("text").get<std::string>();
        CAPTURE(file.filename().string(), group, text);
        Json spans = Json::array();  // in code points, as the file has them
        for (const data::ByteSpan span : punkt->split(text)) {
          const auto characters_before = [&](std::int64_t byte) {
            return data::to_code_points(std::string_view(text).substr(0, static_cast<std::size_t>(byte))).size();
          };
          spans.push_back({characters_before(span.begin), characters_before(span.end)});
        }
        CHECK(spans == one_case.at("spans"));
      }
    }
  }
}
