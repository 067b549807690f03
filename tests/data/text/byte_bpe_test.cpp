#include "data/text/byte_bpe.h"

#include "data/text/byte_words.h"
#include "data/text/tokenizer_json.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/random.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/python.h"

using namespace etc;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

namespace {

Words words_of(std::string_view text) {
  Words words;
  data::for_each_byte_word(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words pieces_of(const data::Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text).pieces;
}

// Texts of characters of all planes, including white space, marks and contractions; the same in every run.
std::vector<std::string> odd_texts(int count) {
  static constexpr char32_t kEnds[] = {0x7F, 0x250, 0x3100, 0x10000, 0x20000};
  static const Words kParts = {" ",   "  ",  "\n", "\t",     "\u00A0", "\u3000", "'s",     "'S",   "'ll", " '",
                               "the", " in", "12", "\u00B2", "\u0301", "!?",     "\u2028", "\x1C", "<s>", "\u0120"};
  std::vector<std::string> texts;
  for (std::uint64_t t = 0; t < static_cast<std::uint64_t>(count); ++t) {
    std::string& text = texts.emplace_back();
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t draw = mix_key(t, i);
      if (draw % 2 == 0) {
        text += kParts[(draw >> 8) % kParts.size()];
      } else {
        const auto c = static_cast<char32_t>((draw >> 16) % kEnds[(draw >> 8) % std::size(kEnds)]);
        const bool known = data::is_letter(c) || data::is_number(c) || data::is_symbol(c) || data::is_punctuation(c) ||
                           data::is_separator(c);
        data::append_utf8(text, known || c < 0x80 ? c : U'\u0301');
      }
    }
  }
  return texts;
}

// Checks that the package gives these texts the tokenizer's ids. vocab: file of a byte-level tokenizer, which the
// package reads as well.
void check_against_package(const data::Tokenizer& tokenizer, const fs::path& vocab, const Words& texts) {
  const auto python = test::python_with("tokenizers");
  if (!python) return test::skip("no Python with tokenizers");
  const test::TemporaryFolder folder;
  Json cases = Json::array();
  for (const std::string& text : texts) cases.push_back({{"text", text}, {"ids", tokenizer.encode_ids(text)}});
  test::write_file(folder / "cases.json", json_line(cases));
  test::write_file(folder / "tokenizer.json", data::tokenizer_json(tokenizer));
  if (!vocab.empty()) {
    for (const auto& [name, path] : data::vocabulary_files(tokenizer, vocab)) fs::copy_file(path, folder / name);
  }
  const auto script = test::source_folder() / "tests" / "support" / "check_tokens.py";
  CHECK(test::run_python(*python, "'" + script.string() + "' '" + folder.path().string() + "'") == 0);
}

Words golden_texts() {
  Words texts;
  for (const fs::path& file : test::golden_files(".json")) {
    if (file.filename().string().find("tokenization") == std::string::npos) continue;
    const Json document = read_json_file(file);
    for (const Json& one_case : document.at("cases")) texts.push_back(one_case.at("text"));
  }
  return texts;
}

}  // namespace

TEST_CASE("a text is cut into words as GPT-2's pattern does", "[data][text]") {
  CHECK(words_of("It's we'll  go.\n\n x'S") ==
        Words{"It", "'s", " we", "'ll", " ", " go", ".", "\n\n", " x", "'", "S"});
  CHECK(words_of("a1\u00B2\u0301 \u4E2D\u6587!") == Words{"a", "1\u00B2", "\u0301", " \u4E2D\u6587", "!"});
  CHECK(words_of(" 's !'s") == Words{" '", "s", " !'", "s"});
  CHECK(words_of("a \u00A0b\u00A0c\t") == Words{"a", " ", "\u00A0", "b", "\u00A0", "c", "\t"});
  CHECK(words_of("\x1Cq  ") == Words{"\x1C", "q", "  "});  // not white space in Unicode
  CHECK(words_of("").empty());
}

TEST_CASE("bytes are written as printable characters and back", "[data][text]") {
  CHECK(data::byte_letters(" a\n\xC3") == "\u0120a\u010A\u00C3");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(data::bytes_of_letters(data::byte_letters(all)) == all);
  CHECK(data::joined_byte_pieces({"\u0120the", "\u0120caf", "\u00C3", "\u00A9"}) == "the caf\u00E9");
  CHECK(data::joined_byte_pieces({"\u00A9", "a"}) == "a");  // only the end of a character
  CHECK(data::sentencepiece_spelling({"\u0120caf", "\u00C3", "\u00A9\u0120a"}) ==
        Words{"\u2581caf", "\u00E9", "\u2581a"});
}

TEST_CASE("byte-level pieces are merged in the order of their learning", "[data][text]") {
  const test::TemporaryFolder folder;
  const auto tokenizer = test::small_byte_bpe(folder.path());
  CHECK(tokenizer->kind() == std::string_view("byte_bpe"));
  CHECK_FALSE(tokenizer->lower_case());
  CHECK(pieces_of(*tokenizer, "the thin inner") == Words{"the", "\u0120th", "in", "\u0120in", "n", "er"});
  CHECK(pieces_of(*tokenizer, "\u00E9<s>") == Words{"\u00C3", "\u00A9", "<", "s", ">"});
  CHECK(pieces_of(*tokenizer, "in\xFFin") == Words{"in", "in"});  // invalid UTF-8 is left out
  Ids behind;
  tokenizer->append_word_ids("in", behind);
  CHECK(behind == Ids{tokenizer->piece_id("\u0120in")});
  tokenizer->append_word_ids("", behind);
  CHECK(behind.size() == 1);
  for (std::int32_t id = 0; id < tokenizer->vocab_size(); ++id) CHECK(tokenizer->piece_id(tokenizer->piece(id)) == id);
  REQUIRE_THROWS_WITH(tokenizer->piece_id("zz"), Catch::EndsWith("the vocabulary has no piece \"zz\""));
}

TEST_CASE("a piece that the merges do not make of its letters is not taken for its word", "[data][text]") {
  const test::TemporaryFolder folder;
  const auto tokenizer = test::small_byte_bpe(folder.path(), {"ab", "abc", "bc"}, "b c\na b\na bc\n");
  CHECK(pieces_of(*tokenizer, "ab abc") == Words{"ab", "\u0120", "abc"});
  const auto unreached = test::small_byte_bpe(folder.path(), {"ab", "abc", "bc"}, "a b\nb c\n");
  CHECK(pieces_of(*unreached, "abc") == Words{"ab", "c"});
}

TEST_CASE("a byte-level vocabulary says what is wrong with it", "[data][text]") {
  const test::TemporaryFolder folder;
  const fs::path vocab = folder / "vocab.json", merges = folder / "merges.txt";
  const auto message = [&](const std::string& pieces, const std::string& rules) {
    test::write_file(vocab, pieces);
    rules == "none" ? void(fs::remove(merges)) : test::write_file(merges, rules);
    try {
      data::load_tokenizer(vocab);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  const std::string good = test::byte_pieces({"ab"});
  CHECK(message(good, "#version: 0.2\r\na b\r\n") == "loaded");
  CHECK_THAT(message(good, "none"), Catch::EndsWith("is two files: expected " + merges.string() + " beside it"));
  CHECK_THAT(message("[1]", ""), Catch::EndsWith("expected an object {\"piece\": id, …}, got array"));
  CHECK_THAT(message("{\"model\": {}}", ""), Catch::Contains("this is a tokenizer.json: expected vocab.json"));
  CHECK_THAT(message("{\"a\": 1}", ""), Catch::EndsWith("\"a\": expected an id of its own from 0 to 0 (there are 1 "
                                                        "pieces), got 1"));
  CHECK_THAT(message("{\"a\": 0, \"b\": 0}", ""), Catch::Contains("expected an id of its own from 0 to 1"));
  CHECK_THAT(message("{\"a\": 0}", ""), Catch::Contains("no piece for the byte 0x00: expected \"\u0100\""));
  CHECK_THAT(message(good, "a b c\n"),
             Catch::EndsWith("merges.txt: line 1: expected two pieces with a blank between, got \"a b c\""));
  CHECK_THAT(message(good, "a b\n\nb a\n"), Catch::Contains("line 3: ") && Catch::Contains("has no piece \"ba\""));
  CHECK_THAT(message(good, "a \xFF\n"), Catch::EndsWith("merges.txt: byte 2 is not UTF-8"));
}

TEST_CASE("the merges' file goes with the vocabulary's name", "[data][text]") {
  CHECK(data::merges_beside("/m/vocab.json") == "/m/merges.txt");
  CHECK(data::merges_beside("x/my-vocab.json") == "x/my-merges.txt");
  CHECK(data::merges_beside("gpt2_encoder.json") == "gpt2_vocab.bpe");
  CHECK(data::merges_beside("pieces.json") == "merges.txt");
}

TEST_CASE("ids of byte-level pieces, and of tokenizer.json, are those of the package tokenizers", "[data][text]") {
  const test::TemporaryFolder folder;
  check_against_package(*test::small_byte_bpe(folder.path()), folder / "vocab.json", odd_texts(300));
}

TEST_CASE("tokenizer.json gives every golden string its ids", "[data][text][golden]") {
  const auto data = test::real_data_folder();
  const Words golden = golden_texts();
  if (!data || golden.empty()) return test::skip("no golden file *tokenization*.json, or no vocabularies");
  const fs::path bert = *data / "vocab" / "bert_uncased_vocab.txt", pieces = *data / "vocab" / "roberta_vocab.json";
  for (const bool lower : {true, false}) {
    CAPTURE(lower);
    check_against_package(*data::load_tokenizer(bert, {.do_lower_case = lower}), "", golden);
  }
  const fs::path merges = *data / "vocab" / "gpt2_vocab.bpe";
  if (!fs::exists(pieces) || !fs::exists(merges)) return test::skip("no vocabulary of RoBERTa");
  const test::TemporaryFolder folder;
  fs::copy_file(pieces, folder / "vocab.json");
  fs::copy_file(merges, folder / "merges.txt");
  Words texts = odd_texts(300);
  texts.insert(texts.end(), golden.begin(), golden.end());
  check_against_package(*data::load_tokenizer(folder / "vocab.json"), folder / "vocab.json", texts);
}
