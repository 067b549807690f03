// The character vocabulary: ids, the file and its messages.
#include "data/text/character_vocab.h"

#include "data/text/tokenizer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc::data {
namespace {

using Catch::Contains;

TEST_CASE("a vocabulary of characters loses nothing of a text", "[data][text]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "w.chars", character_vocab_text(U"e \n\u00e4\U0001F600"));
  CHECK(read_file(folder / "w.chars") == "#characters\nU+0065\nU+0020\nU+000A\nU+00E4\nU+1F600\n");
  const auto tokenizer = load_tokenizer(folder / "w.chars");
  CHECK(tokenizer->kind() == std::string("characters"));
  CHECK(tokenizer->vocab_size() == 7);
  CHECK(tokenizer->vocab_sha256().size() == 64);
  const std::string text = "e \xC3\xA4\xF0\x9F\x98\x80\nx";
  CHECK(tokenizer->encode_ids(text) == std::vector<std::int32_t>{2, 3, 5, 6, 4, 1});
  CHECK(tokenizer->encode_ids("e\xFF"
                              "e") == std::vector<std::int32_t>{2, 2});
  CHECK(tokenizer->encode(text).ids == tokenizer->encode_ids(text));
  CHECK(tokenizer->encode(text).pieces.at(2) == "\xC3\xA4");
  CHECK(tokenizer->piece(0) == "</s>");
  CHECK(tokenizer->piece(6) == "\xF0\x9F\x98\x80");
  CHECK(tokenizer->piece_id("</s>") == 0);
  CHECK(tokenizer->piece_id("\n") == 4);
  CHECK_THROWS_WITH(tokenizer->piece_id("q"), Contains("no piece q"));
  CHECK_THROWS_WITH(tokenizer->piece_id("ee"), Contains("no piece ee"));
  const WordCounts counts = {{"a", 3}, {"b", 5}, {"c", 3}, {"d", 1}};
  CHECK(most_frequent_characters(counts, 3) == U"bac");
  CHECK(most_frequent_characters(counts, 0) == U"bacd");
}

TEST_CASE("a damaged vocabulary of characters is refused with its line", "[data][text]") {
  const auto refuses = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH(parse_character_vocab(text, "v.chars"), Contains("v.chars: ") && Contains(message));
  };
  refuses("", "expected at least one character, got none");
  refuses("#characters\n", "expected at least one character, got none");
  refuses("a\nb\n", "line 1: expected \"#characters\", got \"a\"");
  refuses("#characters\nU+0041\n\nU+0042\n", "line 3: expected a character like U+0041, got \"\"");
  refuses("#characters\nU+D800\n", "line 2: expected a character like U+0041, got \"U+D800\"");
  refuses("#characters\nU+110000\n", "line 2: expected a character");
  refuses("#characters\nU+41x\n", "line 2: expected a character");
  refuses("#characters\nU+0041\nU+41\n", "line 3: U+41 stands in line 2 already");
}

}  // namespace
}  // namespace etc::data
