#include "data/text/sentencepiece.h"

#include <chrono>
#include <limits>

#include "data/text/sentencepiece_check.h"
#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/support/threads.h"

using namespace etc;
using Words = std::vector<std::string>;
using Catch::Contains;
using test::ModelPiece;
using test::PieceType;

namespace {

std::unique_ptr<data::Tokenizer> load_model(const std::string& bytes, const data::TokenizerOptions& options = {}) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "small.model", bytes);
  return data::load_tokenizer(folder / "small.model", options);
}

// A copy of `map` with 4 bytes replaced.
std::string patched(std::string map, std::size_t at, std::uint32_t value) {
  return map.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}

std::string model_with(const std::string& character_map) {
  return test::sentencepiece_model({{"<unk>", 0, PieceType::unknown}, {"\u2581", -1}, {"a", -2}}, character_map);
}

}  // namespace

TEST_CASE("a SentencePiece model gives pieces, ids and the surface of unknown text", "[data][text]") {
  const auto tokenizer = load_model(test::small_sentencepiece_model());
  REQUIRE(tokenizer->kind() == std::string("sentencepiece"));
  REQUIRE_FALSE(tokenizer->lower_case());
  REQUIRE(tokenizer->vocab_size() == 30);
  REQUIRE(tokenizer->vocab_sha256().size() == 64);
  const data::Tokens tokens = tokenizer->encode("  the \u4e2d\u6587 x");
  REQUIRE(tokens.pieces == Words{"\u2581the", "\u2581", "\u4e2d\u6587", "\u2581x"});
  REQUIRE(tokens.ids == std::vector<std::int32_t>{4, 3, 0, 7});
  REQUIRE(tokenizer->encode_ids("  the \u4e2d\u6587 x") == tokens.ids);
  REQUIRE(tokenizer->encode("").pieces.empty());
  REQUIRE(tokenizer->encode(" ").pieces.empty());
  REQUIRE(tokenizer->piece_id("\u2581the") == 4);
  REQUIRE(tokenizer->piece_id("<s>") == 1);
  REQUIRE_THROWS_WITH(tokenizer->piece_id("zebra"), Contains("small.model: the model has no piece \"zebra\""));
}

TEST_CASE("a run of unknown characters is one piece, in time that grows with its length", "[data][text]") {
  const auto tokenizer = load_model(model_with(""));
  std::string run;
  for (int i = 0; i < 400'000; ++i) run += i % 2 == 0 ? "\u4e2d" : "\u2603";
  const auto start = std::chrono::steady_clock::now();
  const data::Tokens tokens = tokenizer->encode("a " + run + "a");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(tokens.pieces == Words{"\u2581", "a", "\u2581", run, "a"});
  CHECK(tokens.ids == std::vector<std::int32_t>{1, 2, 1, 0, 2});
  CHECK(seconds.count() < 5);  // joined one by one, it takes several times as long
  // Pieces for single bytes are no pieces of the model.
  CHECK(tokenizer->vocab_size() == 3);
  CHECK_THROWS_WITH(tokenizer->piece_id("<0x41>"), Contains("the model has no piece \"<0x41>\""));
  CHECK(tokenizer->encode("<0x41>").pieces == Words{"\u2581", "<0x41>"});
  CHECK(tokenizer->encode("<0x41>").ids == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("a piece that ends in digit and comma is encoded again without the comma", "[data][text]") {
  const auto tokenizer = load_model(test::small_sentencepiece_model());
  REQUIRE(tokenizer->encode("the 2018, x").pieces == Words{"\u2581the", "\u2581", "2", "0", "1", "8", ",", "\u2581x"});
  REQUIRE(tokenizer->encode("the 2018, x").re_encoded == std::vector<std::int32_t>{1, 2, 3, 4, 5});
  // Mid-word, re-encoding adds a "▁", which the reference keeps.
  REQUIRE(tokenizer->encode("x000,").pieces == Words{"\u2581x", "\u2581", "0", "0", "0", ","});
  REQUIRE(tokenizer->encode_ids("x000,") == tokenizer->encode("x000,").ids);
  const auto stripping = load_model(test::small_sentencepiece_model(), {.strip_comma_prefix = true});
  REQUIRE(stripping->encode("x000,").pieces == Words{"\u2581x", "0", "0", "0", ","});
  REQUIRE(stripping->encode("2018,").pieces == Words{"\u2581", "2", "0", "1", "8", ","});
}

TEST_CASE("the stripped digit-comma rule shortens a piece and looks its id up again", "[data][text]") {
  const std::string model = test::sentencepiece_model({{"<unk>", 0, PieceType::unknown},
                                                       {"\u2581", -3},
                                                       {"x", -3},
                                                       {"00,", -1},
                                                       {"\u258100", -1},
                                                       {"00", -9},
                                                       {"\u25817", -1},
                                                       {"7,", -1},
                                                       {",", -3}});
  const auto kept = load_model(model)->encode("x00,");
  REQUIRE(kept.pieces == Words{"\u2581", "x", "\u258100", ","});
  const auto stripped = load_model(model, {.strip_comma_prefix = true});
  REQUIRE(stripped->encode("x00,").pieces == Words{"\u2581", "x", "00", ","});
  REQUIRE(stripped->encode("x00,").ids == std::vector<std::int32_t>{1, 2, 5, 8});
  REQUIRE(stripped->encode("x7,").ids == std::vector<std::int32_t>{1, 2, 0, 8});  // "7" alone is not in the model
}

TEST_CASE("the digit before the comma may be any Unicode digit, and must be one", "[data][text]") {
  const auto model = [](const std::string& piece) {
    return test::sentencepiece_model({{"<unk>", 0, PieceType::unknown}, {"\u2581", -3}, {piece, -1}, {",", -3}});
  };
  REQUIRE(load_model(model("\u00b2,"))->encode("\u00b2,").pieces == Words{"\u2581", "\u2581", "\u00b2", ","});
  REQUIRE(load_model(model("\u00bd,"))->encode("\u00bd,").pieces == Words{"\u2581", "\u00bd,"});
  REQUIRE(load_model(model("a,"))->encode("a,").pieces == Words{"\u2581", "a,"});
}

TEST_CASE("a character map normalises the text", "[data][text]") {
  const auto tokenizer = load_model(model_with(test::character_map('A', "a")));
  REQUIRE(tokenizer->encode("Aa").pieces == Words{"\u2581", "a", "a"});
}

TEST_CASE("pieces are joined to text with a map from characters to pieces", "[data][text]") {
  const auto joined = data::detokenize({"\u2581in", "\u2581", "\u4e2d\u6587", ",", "\u2581x"});
  REQUIRE(joined.text == "in \u4e2d\u6587, x");
  REQUIRE(joined.char_to_token == std::vector<std::int32_t>{0, 0, 1, 2, 2, 3, 4, 4});
  REQUIRE(data::detokenize({}).text.empty());
  REQUIRE(data::detokenize({"a\u2581"}).text == "a ");
}

TEST_CASE("files that are no SentencePiece model are refused by name", "[data][text]") {
  REQUIRE_THROWS_WITH(data::load_tokenizer("/nowhere/x.model"),
                      Contains("/nowhere/x.model: cannot open: No such file"));
  REQUIRE_THROWS_WITH(load_model(""), Contains("small.model: the SentencePiece model is empty"));
  REQUIRE_THROWS_WITH(load_model("[PAD]\n[UNK]\n"),
                      Contains("small.model: SentencePiece model: not a protocol buffer"));
  REQUIRE_THROWS_WITH(load_model(test::small_sentencepiece_model().substr(0, 100)), Contains("or cut short"));
  REQUIRE_THROWS_WITH(load_model(test::sentencepiece_model({{"a", 0}})),
                      Contains("small.model: not a usable SentencePiece model: "));
  REQUIRE_THROWS_WITH(load_model(std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11)),
                      Contains("not a protocol buffer"));
}

TEST_CASE("pieces must be UTF-8 without zero bytes and have finite scores", "[data][text]") {
  const auto with = [](const ModelPiece& piece) {
    return test::sentencepiece_model({{"<unk>", 0, PieceType::unknown}, {"a", -1}, piece});
  };
  const std::string message = "piece 2: expected UTF-8 without zero bytes";
  REQUIRE_THROWS_WITH(load_model(with({"b\xff", -1})), Contains(message));
  REQUIRE_THROWS_WITH(load_model(with({std::string("b\0c", 3), -1})), Contains(message));
  REQUIRE_THROWS_WITH(load_model(with({"b", std::numeric_limits<float>::quiet_NaN()})),
                      Contains("piece 2: expected a finite score, got nan"));
}

TEST_CASE("a character map that leads the library outside its bounds is refused", "[data][text]") {
  const std::string map = test::character_map('A', "a");
  const auto check = [](const std::string& character_map) {
    data::check_sentencepiece_bytes(model_with(character_map), "x.model");
  };
  constexpr std::size_t kEdge = 4 + 4 * (256 ^ 'A'), kLeaf = 4 + 4 * 512;
  REQUIRE_NOTHROW(check(map));
  REQUIRE_THROWS_WITH(check("abc"), Contains("x.model: SentencePiece model: the character map is cut short"));
  REQUIRE_THROWS_WITH(check(patched(map, 0, static_cast<std::uint32_t>(map.size() - 3))), Contains("cut short"));
  REQUIRE_THROWS_WITH(check(patched(map, 0, 3)), Contains("the character map has no trie"));
  REQUIRE_THROWS_WITH(check(patched(map, 4, 768u << 10)), Contains("an edge of the character map leads outside"));
  REQUIRE_THROWS_WITH(check(patched(map, kEdge, (1u << 30) | (1u << 8) | 'A')), Contains("leads outside"));
  REQUIRE_THROWS_WITH(check(patched(map, kLeaf, 0x80000002u)), Contains("a replacement of the character map lies"));
  REQUIRE_THROWS_WITH(check(map.substr(0, map.size() - 1)), Contains("a replacement of the character map has no end"));
  REQUIRE_THROWS_WITH(check(test::character_map('A', "\xff")), Contains("is not UTF-8"));
  REQUIRE_THROWS_WITH(check(test::character_map('A', std::string(2000, 'a'))), Contains("has no end"));
  // The edge for "A" leads back to its start, so "AAA…" passes a rule with every letter.
  const std::uint32_t circle = ((256u ^ 'A') ^ 256u) << 10 | 1u << 8 | 'A';
  REQUIRE_THROWS_WITH(check(patched(patched(map, kEdge, circle), 4 + 4 * 256, 0x80000000u)),
                      Contains("too many rules of the character map are prefixes of each other"));
}

TEST_CASE("one SentencePiece tokenizer serves several threads", "[data][text]") {
  const auto tokenizer = load_model(test::small_sentencepiece_model());
  const std::string text = "the 2018, x000, \u4e2d ace the 1,000, x";
  const auto expected = tokenizer->encode_ids(text);
  REQUIRE(test::failures_on_threads(100, [&] { return tokenizer->encode_ids(text) == expected; }) == 0);
}

TEST_CASE("user-defined pieces stay whole on request, wherever they stand", "[text]") {
  const std::string model = test::sentencepiece_model({{"<unk>", 0, PieceType::unknown},
                                                       {"\u2581", -1},
                                                       {"a", -2},
                                                       {"b", -2},
                                                       {"[", -1},
                                                       {"]", -1},
                                                       {"\u2581[", -1},
                                                       {"[a]", 0, PieceType::user_defined},
                                                       {"[a]]", 0, PieceType::user_defined}});
  const auto whole = load_model(model, {.whole_user_pieces = true});
  const auto pieces = [&](const std::string& text) { return whole->encode(text).pieces; };
  CHECK(pieces("b [a] b") == Words{"\u2581", "b", "\u2581", "[a]", "\u2581", "b"});
  CHECK(pieces("b[a]b") == Words{"\u2581", "b", "[a]", "b"});
  CHECK(pieces("[a]") == Words{"\u2581", "[a]"});
  CHECK(pieces("[a][a]]b") == Words{"\u2581", "[a]", "[a]]", "b"});
  CHECK(pieces("\u4e2d[a]\u4e2d\u6587") == Words{"\u2581", "\u4e2d", "[a]", "\u4e2d\u6587"});
  CHECK(whole->encode("[a]b").ids == std::vector<std::int32_t>{1, 7, 3});
  CHECK(whole->encode_ids("[a][a]]") == std::vector<std::int32_t>{1, 7, 8});
  // A text with characters of the placeholders' range is left to the library.
  CHECK(!pieces("[a] \U00100005").empty());
}
