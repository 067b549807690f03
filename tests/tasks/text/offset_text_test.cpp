// Text with offsets: unigrams, token maps and answers found, by hand and against the reference.
#include "tasks/text/offset_text.h"

#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using text::LeadingSeparator;
using text::OffsetText;
using text::TokenSpan;

namespace {

using Spans = std::vector<TokenSpan>;

// A WordPiece vocabulary of these pieces after [UNK].
std::unique_ptr<data::Tokenizer> wordpiece(const std::string& lines) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "vocab.txt", "[UNK]\n" + lines);
  return data::load_tokenizer(folder / "vocab.txt");
}

Spans found(const data::Tokenizer& tokenizer, const std::string& utf8, const std::string& answer,
            LeadingSeparator rule = LeadingSeparator::last_unigram) {
  Spans spans;
  for (const auto& one : OffsetText(utf8, tokenizer).find(answer, OffsetText(answer, tokenizer).ids(), rule)) {
    spans.push_back(one.tokens);
  }
  return spans;
}

}  // namespace

TEST_CASE("unigrams are cut at the five separators only", "[tasks][text]") {
  using Words = std::vector<std::string_view>;
  CHECK(text::unigrams(" a\tb\u202Fc\u00A0d\r\n") == Words{"a", "b", "c\u00A0d"});
  CHECK(text::unigrams("").empty());
  CHECK(text::unigrams(" \u202F ").empty());
}

TEST_CASE("answers are found in whole unigrams and tightened to their own tokens", "[tasks][text]") {
  const auto tokenizer = wordpiece("run\nby\n(\n1874\n-\n1950\n)\n.\na\nfinnish\nfirm\nall\nare\nknown\nhere\noslo\n");
  CHECK(found(*tokenizer, "run by (1874-1950).", "1874") == Spans{{3, 3}});
  CHECK(found(*tokenizer, "A Finnish firm", "Finn") == Spans{{1, 1}});
  CHECK(found(*tokenizer, "All are known here", "no") == Spans{{2, 2}});
  CHECK(found(*tokenizer, "1874/1874", "1874") == Spans{{0, 0}, {0, 0}});
  CHECK(found(*tokenizer, "run by run", "Run").empty());
  CHECK(found(*tokenizer, "run by run", "").empty());
  CHECK(found(*tokenizer, "known firm.", "known firm") == Spans{{0, 1}});
  CHECK(found(*tokenizer, "   ", " ").empty());
}

TEST_CASE("occurrences inside words are told from whole words", "[tasks][text]") {
  const auto tokenizer = wordpiece("no\nknown\n.\n");
  const auto inside = [&](const std::string& utf8) {
    std::vector<bool> flags;
    for (const auto& one : OffsetText(utf8, *tokenizer).find("no", {1}, LeadingSeparator::last_unigram)) {
      flags.push_back(one.inside_word);
    }
    return flags;
  };
  CHECK(inside("no. known no") == std::vector<bool>{false, true, false});
  CHECK(inside("nob éno (no)") == std::vector<bool>{true, true, false});
}

TEST_CASE("an answer that begins before the first unigram begins at the last or the first one", "[tasks][text]") {
  const auto tokenizer = wordpiece("oslo\nis\nhere\nand\nthere\n.\n");
  const std::string text = " Oslo is here and Oslo there.";
  CHECK(found(*tokenizer, text, " Oslo") == Spans{{5, 0}, {4, 4}});
  CHECK(found(*tokenizer, text, " Oslo", LeadingSeparator::first_unigram) == Spans{{0, 0}, {4, 4}});
}

TEST_CASE("a unigram without tokens gives a span that ends before it begins", "[tasks][text]") {
  const auto tokenizer = wordpiece("a\nb\n");
  CHECK(found(*tokenizer, "a \u200b b", "\u200b") == Spans{{1, 0}});
}

TEST_CASE("text with offsets equals the reference on every golden string", "[tasks][text][golden]") {
  const auto files = test::golden_named("tokenization", ".json");
  const auto folder = test::real_data_folder();
  if (files.empty() || !folder) return test::skip("no golden file *tokenization*.json");
  const auto tokenizer = data::load_tokenizer(*folder / "vocab" / "bert_uncased_vocab.txt");
  std::int64_t cases = 0;
  for (const auto& path : files) {
    const Json golden = read_json_file(path);
    for (const Json& one : golden.at("cases")) {
      if (!one.contains("wordpiece_with_offsets")) continue;
      ++cases;
      const Json& expected = one.at("wordpiece_with_offsets");
      const auto utf8 = one.at("text").get<std::string>();
      CAPTURE(path.filename().string(), utf8);
      const OffsetText ours(utf8, *tokenizer);
      CHECK(Json(ours.ids()) == expected.at("ids"));
      CHECK(Json(ours.token_unigrams()) == expected.at("tokens_to_unigrams"));
      CHECK(Json(ours.unigram_tokens()) == expected.at("unigrams_to_tokens"));
      CHECK(Json(text::unigrams(utf8)) == expected.at("unigrams"));
      Json pieces = Json::array(), characters = Json::array();
      for (const std::int32_t id : ours.ids()) pieces.push_back(tokenizer->piece(id));
      CHECK(pieces == expected.at("pieces"));
      for (std::size_t byte = 0; byte < utf8.size(); ++byte) {
        if ((static_cast<unsigned char>(utf8[byte]) & 0xC0) != 0x80) characters.push_back(ours.unigram_of(byte));
      }
      CHECK(characters == expected.at("chars_to_unigrams"));
    }
  }
  CHECK(cases > 0);
}
