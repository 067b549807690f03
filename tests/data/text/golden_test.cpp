// Equality with the reference data preparation: every case of every tokenization and Punkt file in the golden folder.
#include <algorithm>
#include <map>

#include "data/text/basic_tokenizer.h"
#include "data/text/sentence_splitter.h"
#include "data/text/sentencepiece.h"
#include "data/text/sha256.h"
#include "data/text/tokenizer.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
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

  // Every vocabulary that the file names is the one that it was made with.
  void require_files() const {
    const auto folder = test::real_data_folder();
    for (const auto& [file, sha256] : head_.at("vocabularies").items()) {
      CAPTURE(file);
      if (folder) CHECK(data::sha256_of_file(*folder / "vocab" / file) == sha256.get<std::string>());
    }
  }

  const data::Tokenizer* get(const std::string& file, bool lower_case) {
    CAPTURE(file);
    REQUIRE(head_.at("vocabularies").contains(file));
    auto& slot = loaded_[file + (lower_case ? " lower" : " cased")];
    if (!slot) {
      const auto folder = test::real_data_folder();
      if (!folder || !fs::exists(*folder / "vocab" / file)) {
        test::skip("no vocabulary " + file);
        return nullptr;
      }
      slot = data::load_tokenizer(*folder / "vocab" / file, {.do_lower_case = lower_case});
      REQUIRE(slot->vocab_sha256() == head_.at("vocabularies").at(file).get<std::string>());
    }
    return slot.get();
  }

 private:
  const Json& head_;
  std::map<std::string, std::unique_ptr<data::Tokenizer>> loaded_;
};

// Requires every key of the object to be one of these: a value that no test compares may be wrong unnoticed.
void require_known(const Json& object, const std::vector<std::string>& keys) {
  for (const auto& [key, value] : object.items()) {
    CAPTURE(key);
    REQUIRE(std::find(keys.begin(), keys.end(), key) != keys.end());
  }
}

void check_tokens(const data::Tokenizer& tokenizer, const std::string& text, const Json& expected) {
  const data::Tokens tokens = tokenizer.encode(text);
  CHECK(Json(tokens.ids) == expected.at("ids"));
  CHECK(tokenizer.encode_ids(text) == tokens.ids);
  CHECK(Json(tokens.pieces) == expected.at("pieces"));
}

void check_wordpiece(Vocabularies& vocabularies, const std::string& text, const Json& one_case) {
  for (const bool lower : {true, false}) {
    const Json& expected = one_case.at(lower ? "wordpiece_lower" : "wordpiece_cased");
    require_known(expected, {"basic", "pieces", "ids"});
    CHECK(Json(data::basic_tokenize(text, lower)) == expected.at("basic"));
    const data::Tokenizer* bert = vocabularies.get("bert_uncased_vocab.txt", lower);
    if (bert != nullptr) check_tokens(*bert, text, expected);
  }
  const Json& lower = one_case.at("wordpiece_lower");
  const data::Tokenizer* nq = vocabularies.get("nq_bert_vocab.txt", true);
  if (nq == nullptr) return;
  const Json& expected =
      one_case.contains("wordpiece_lower_nq_vocab") ? one_case.at("wordpiece_lower_nq_vocab") : lower;
  check_tokens(*nq, text, expected);
}

// The spellings of the ids; the file has them where they differ from the pieces, which keep unknown text.
void check_spellings(const data::Tokenizer& tokenizer, const data::Tokens& tokens, const Json& expected) {
  Json spelled = Json::array();
  for (const std::int32_t id : tokens.ids) spelled.push_back(tokenizer.piece(id));
  CHECK(expected.contains("pieces_from_ids") == (spelled != expected.at("pieces")));
  CHECK(spelled == expected.value("pieces_from_ids", expected.at("pieces")));
}

// The pieces before the digit-comma rule, which the tokenizer does not keep: the pieces that it encoded again and the
// comma behind them were one piece, whose "▁" the rule may have added. The file has them where the rule applies.
void check_before_comma_rule(const data::Tokenizer& tokenizer, const data::Tokens& tokens, const Json& expected) {
  REQUIRE(expected.contains("pieces_before_comma_rule") == !tokens.re_encoded.empty());
  REQUIRE(expected.contains("model_ids_before_comma_rule") == !tokens.re_encoded.empty());
  if (tokens.re_encoded.empty()) return;
  const auto pieces = expected.at("pieces_before_comma_rule").get<std::vector<std::string>>();
  const auto ids = expected.at("model_ids_before_comma_rule").get<std::vector<std::int32_t>>();
  REQUIRE(ids.size() == pieces.size());
  std::vector<bool> again(tokens.pieces.size(), false);
  for (const std::int32_t i : tokens.re_encoded) again[static_cast<std::size_t>(i)] = true;
  std::size_t before = 0;
  for (std::size_t i = 0; i < tokens.pieces.size(); ++i, ++before) {
    CAPTURE(i);
    REQUIRE(before < pieces.size());
    if (!again[i]) {
      CHECK(pieces[before] == tokens.pieces[i]);
      CHECK(ids[before] == tokens.ids[i]);
      continue;
    }
    std::string joined;
    for (; i < again.size() && again[i]; ++i) joined += tokens.pieces[i];
    REQUIRE(i < again.size());
    joined += tokens.pieces[i];  // the comma
    const std::string blank = "\u2581";
    CHECK((pieces[before] == joined || blank + pieces[before] == joined));
    if (tokenizer.piece(ids[before]) == pieces[before]) continue;
    CHECK(tokenizer.piece(ids[before]) == "<unk>");
    CHECK_THROWS_AS(tokenizer.piece_id(pieces[before]), Error);
  }
  CHECK(before == pieces.size());
}

void check_sentencepiece(Vocabularies& vocabularies, const std::string& text, const Json& one_case) {
  for (const auto& [model, expected] : one_case.at("sentencepiece").items()) {
    CAPTURE(model);
    const data::Tokenizer* tokenizer = vocabularies.get(model + ".model", false);
    if (tokenizer == nullptr) continue;
    require_known(expected, {"pieces", "ids", "pieces_from_ids", "pieces_before_comma_rule",
                             "model_ids_before_comma_rule", "detokenized", "chars_to_tokens"});
    check_tokens(*tokenizer, text, expected);
    const data::Tokens tokens = tokenizer->encode(text);
    check_spellings(*tokenizer, tokens, expected);
    check_before_comma_rule(*tokenizer, tokens, expected);
    const data::DetokenizedText joined = data::detokenize(tokens.pieces);
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
    require_known(golden, {"head", "cases"});
    Vocabularies vocabularies(golden.at("head"));
    vocabularies.require_files();
    CHECK(!golden.at("cases").empty());
    for (const Json& one_case : golden.at("cases")) {
      const auto text = one_case.at("text").get<std::string>();
      CAPTURE(file.filename().string(), text);
      // "wordpiece_with_offsets" is compared in tests/tasks/text.
      require_known(one_case, {"text", "code_points", "wordpiece_lower", "wordpiece_cased", "wordpiece_lower_nq_vocab",
                               "wordpiece_with_offsets", "sentencepiece"});
      if (one_case.contains("code_points")) {
        const std::u32string characters = data::to_code_points(text);
        CHECK(Json(std::vector<std::uint32_t>(characters.begin(), characters.end())) == one_case.at("code_points"));
      }
      CHECK(!one_case.at("sentencepiece").empty());
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
      if (group == "head") continue;
      REQUIRE(cases.is_array());
      CHECK(!cases.empty());
      for (const Json& one_case : cases) {
        require_known(one_case, {"text", "spans"});
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
