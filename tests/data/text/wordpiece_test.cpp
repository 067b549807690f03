#include "data/text/basic_tokenizer.h"
#include "data/text/sha256.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/threads.h"

using namespace etc;
using Words = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;
using Catch::Contains;

namespace {

// The tokenizer of a vocabulary with these bytes.
std::unique_ptr<data::Tokenizer> load_vocabulary(const std::string& bytes, bool lower_case = true) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "vocab.txt", bytes);
  return data::load_tokenizer(folder / "vocab.txt", {.do_lower_case = lower_case});
}

const std::string kVocab = "[PAD]\n[UNK]\nun\n##aff\n##able\n##a\nthe\n,\n.\n##\u00e9\ncaf\n\u4e2d\n##s\n#\n";

}  // namespace

TEST_CASE("the basic tokenizer cuts at white space, punctuation and CJK characters", "[data][text]") {
  REQUIRE(data::basic_tokenize("", true).empty());
  REQUIRE(data::basic_tokenize(" \t\r\n\u00a0\u3000\u2028", true).empty());
  REQUIRE(data::basic_tokenize("Hello, World!", true) == Words{"hello", ",", "world", "!"});
  REQUIRE(data::basic_tokenize("Hello, World!", false) == Words{"Hello", ",", "World", "!"});
  REQUIRE(data::basic_tokenize("a$b^c", true) == Words{"a", "$", "b", "^", "c"});
  REQUIRE(data::basic_tokenize("[CLS]", true) == Words{"[", "cls", "]"});
  REQUIRE(data::basic_tokenize("x\u4e2d\u6587y", true) == Words{"x", "\u4e2d", "\u6587", "y"});
  REQUIRE(data::basic_tokenize("\uac00\uac00", false) == Words{"\uac00\uac00"});  // Hangul is not cut
  REQUIRE(data::basic_tokenize("rock\u2013paper", true) == Words{"rock", "\u2013", "paper"});
  REQUIRE(data::basic_tokenize("a\u2028b", true) == Words{"a", "b"});
}

TEST_CASE("the basic tokenizer drops controls and joins what they parted", "[data][text]") {
  REQUIRE(data::basic_tokenize(std::string("a\0b\x07"
                                           "C\x7f"
                                           "d",
                                           7),
                               true) == Words{"abcd"});
  REQUIRE(data::basic_tokenize("a\u200bb\u00adc\ufffdd", true) == Words{"abcd"});
  REQUIRE(data::basic_tokenize("\x0b\x0c\x1c", true).empty());  // white space to Python, but dropped before it splits
  REQUIRE(data::basic_tokenize("a\u0085b", true) == Words{"ab"});
  REQUIRE(data::basic_tokenize("a\xff\xc3z", true) == Words{"az"});
}

TEST_CASE("lower-casing sees the whole run between white space and strips accents", "[data][text]") {
  REQUIRE(data::basic_tokenize("CAF\u00c9 \u0130", true) == Words{"cafe", "i"});
  REQUIRE(data::basic_tokenize("CAF\u00c9", false) == Words{"CAF\u00c9"});
  // The sigma is final before white space, not before ".\u0391"; the period becomes a word afterwards.
  REQUIRE(data::basic_tokenize("\u0391\u03a3 \u0391\u03a3.\u0391", true) ==
          Words{"\u03b1\u03c2", "\u03b1\u03c3", ".", "\u03b1"});
  REQUIRE(data::basic_tokenize("a.\u0301b", true) == Words{"a", ".", "b"});
}

TEST_CASE("words are cut greedily, or become one [UNK]", "[data][text]") {
  const auto tokenizer = load_vocabulary(kVocab);
  REQUIRE(tokenizer->encode("UNAFFABLE").pieces == Words{"un", "##aff", "##able"});
  REQUIRE(tokenizer->encode("UNAFFABLE").ids == Ids{2, 3, 4});
  REQUIRE(tokenizer->encode_ids("unaffablex the, unaffa.") == Ids{1, 6, 7, 2, 3, 5, 8});
  REQUIRE(tokenizer->encode_ids("aff") == Ids{1});  // only a continuation
  REQUIRE(tokenizer->encode_ids("##aff") == Ids{13, 13, 1});
  REQUIRE(tokenizer->encode_ids("\u4e2d\u6587") == Ids{11, 1});
  REQUIRE(tokenizer->encode("").pieces.empty());
  REQUIRE(load_vocabulary(kVocab, false)->encode_ids("caf\u00e9 Un") == Ids{10, 9, 1});
}

TEST_CASE("the words behind [UNK] are told by position", "[data][text]") {
  const data::Tokens tokens = load_vocabulary(kVocab)->encode("the Zebra, unaffable \u6587");
  REQUIRE(tokens.pieces == Words{"the", "[UNK]", ",", "un", "##aff", "##able", "[UNK]"});
  REQUIRE(tokens.unknown_words == std::vector<std::pair<std::int32_t, std::string>>{{1, "zebra"}, {6, "\u6587"}});
  REQUIRE(tokens.re_encoded.empty());
}

TEST_CASE("a word of 200 characters is cut, one of 201 is unknown, whatever its bytes", "[data][text]") {
  const auto tokenizer = load_vocabulary("[UNK]\nx\n##x\n\u00e9\n##\u00e9\n", false);
  REQUIRE(tokenizer->encode_ids(std::string(200, 'x')).size() == 200);
  REQUIRE(tokenizer->encode_ids(std::string(201, 'x')) == Ids{0});
  std::string accents;
  for (int i = 0; i < 200; ++i) accents += "\u00e9";
  REQUIRE(tokenizer->encode_ids(accents).size() == 200);
  REQUIRE(tokenizer->encode_ids(accents + "x") == Ids{0});
}

TEST_CASE("a vocabulary keeps its lines in order, trimmed, with one blank line at most", "[data][text]") {
  const auto tokenizer = load_vocabulary("[UNK]\r\n\u00a0a \t\n\nb");
  REQUIRE(tokenizer->vocab_size() == 4);
  REQUIRE(tokenizer->piece_id("a") == 1);
  REQUIRE(tokenizer->piece_id("") == 2);
  REQUIRE(tokenizer->piece_id("b") == 3);
  REQUIRE(tokenizer->kind() == std::string("wordpiece"));
  REQUIRE(tokenizer->lower_case());
  REQUIRE(tokenizer->vocab_sha256() == data::sha256_hex("[UNK]\r\n\u00a0a \t\n\nb"));
}

TEST_CASE("a line that repeats a piece of a vocabulary has no id, which is said once", "[data][text]") {
  const test::TemporaryFolder folder;
  log::also_to_file(folder / "log");
  test::write_file(folder / "vocab.txt", "[UNK]\na\n\nb\n a\n\nc\n##c\n");
  const auto tokenizer = data::load_tokenizer(folder / "vocab.txt");
  CHECK(tokenizer->vocab_size() == 6);
  CHECK(tokenizer->piece_id("b") == 3);
  CHECK(tokenizer->encode_ids("a b c cc") == Ids{1, 3, 4, 4, 5});
  CHECK(tokenizer->piece(4) == "c");
  data::load_tokenizer(folder / "vocab.txt");
  const std::string log = read_file(folder / "log");
  const std::string warning =
      "vocab.txt: 2 lines that repeat an earlier one have no id: from line 5 on, ids are below the numbers of lines";
  REQUIRE(log.find(warning) != std::string::npos);
  CHECK(log.find(warning) == log.rfind(warning));
  test::write_file(folder / "other.txt", "[UNK]\na\na\n");
  CHECK(data::load_tokenizer(folder / "other.txt")->vocab_size() == 2);
  CHECK_THAT(read_file(folder / "log"),
             Contains("other.txt: 1 line that repeats an earlier one has no id: from line 3"));
}

TEST_CASE("a WordPiece vocabulary that cannot be meant so is refused by name and line", "[data][text]") {
  REQUIRE_THROWS_WITH(load_vocabulary(""), Contains("vocab.txt: the vocabulary is empty"));
  REQUIRE_THROWS_WITH(load_vocabulary("a\nb\n"), Contains("vocab.txt: the vocabulary has no [UNK]"));
  REQUIRE_THROWS_WITH(load_vocabulary("[UNK]\nab\xff\n"), Contains("vocab.txt: line 2: byte 8 is not valid UTF-8"));
  REQUIRE_THROWS_WITH(load_vocabulary(kVocab)->piece_id("[CLS]"),
                      Contains("vocab.txt: the vocabulary has no piece \"[CLS]\""));
  REQUIRE_THROWS_WITH(data::load_tokenizer("/nowhere/vocab.txt"),
                      Contains("/nowhere/vocab.txt: cannot open: No such file"));
}

TEST_CASE("one WordPiece tokenizer serves several threads", "[data][text]") {
  const auto tokenizer = load_vocabulary(kVocab);
  const std::string text = "unaffable the caf\u00e9, \u4e2d UN aff\u00c9.";
  const Ids expected = tokenizer->encode_ids(text);
  REQUIRE(test::failures_on_threads(200, [&] { return tokenizer->encode_ids(text) == expected; }) == 0);
}
