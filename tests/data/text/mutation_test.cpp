// Damaged vocabularies, models and tables: every mutant gives a clear Error or a usable object. Mutants are the same in
// every run; a failure prints the number that reproduces it.
#include <functional>

#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"
#include "tests/support/sentencepiece_model.h"

using namespace etc;
namespace fs = std::filesystem;

namespace {

constexpr int kFew = 200, kMany = 5000;

const std::string kText =
    "The U.S. Navy (in 2018, 1,000) met J. Smith . . . Caf\u00e9 \u4e2d\u6587, un\u00e9-affable? \"Yes.\" A\u00b2, "
    "x000, He left.\nAAA the end";

// Whether load() succeeds; the message of an Error must name the file.
bool loads(const fs::path& file, const std::function<void()>& load) {
  try {
    load();
    return true;
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.starts_with(file.string() + ": "));
    CHECK(message.size() > file.string().size() + 10);
    CHECK_FALSE(data::invalid_utf8(message).has_value());
    return false;
  }
}

void use(const data::Tokenizer& tokenizer) {
  const data::Tokens tokens = tokenizer.encode(kText);
  CHECK(tokens.pieces.size() == tokens.ids.size());
  CHECK(tokens.ids == tokenizer.encode_ids(kText));
  for (const std::int32_t id : tokens.ids) CHECK((id >= 0 && id < tokenizer.vocab_size()));
  for (const std::string& piece : tokens.pieces) CHECK_FALSE(data::invalid_utf8(piece).has_value());
}

// Loads `count` mutants of a vocabulary and uses those that load.
void mutate_vocabulary(const std::string& name, const std::string& bytes, int count) {
  const test::TemporaryFolder folder;
  int loaded = 0;
  for (int seed = 0; seed < count; ++seed) {
    CAPTURE(name, seed);
    test::write_file(folder / name, test::mutate(bytes, static_cast<std::uint64_t>(seed)));
    loaded += loads(folder / name, [&] { use(*data::load_tokenizer(folder / name)); }) ? 1 : 0;
  }
  CHECK(loaded < count);  // some damage must have been detected
}

std::string small_vocabulary() {
  std::string lines = "[PAD]\n[UNK]\n[CLS]\n";
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz0123456789")) {
    lines += std::string(1, c) + "\n##" + c + "\n";
  }
  return lines + "the\n##affable\ncafe\n\u4e2d\n.\n,\n?\n\"\n";
}

void mutate_wordpiece(int count) {
  mutate_vocabulary("vocab.txt", small_vocabulary(), count);
}

void mutate_subword(int count) {
  std::string codes = "#version: 0.2\nt h\nth e</w>\ne n\nen d</w>\n\u00e9 -\na f\n";
  std::string pieces = "the 9\nend 4\nth@@ 2\nen@@ 2\na@@ 2\n\u4e2d@@ 1\n. 3\n, 3\nmadeupword0000 0\n";
  mutate_vocabulary("codes.bpe", codes + "#dictionary words=13a case=mixed\n" + pieces, count);
  mutate_vocabulary("pieces.words", "#dictionary words=blanks case=lower\n" + pieces, count);
}

void mutate_characters(int count) {
  mutate_vocabulary("v.chars", "#characters\nU+0020\nU+0065\nU+0074\nU+000A\nU+4E2D\nU+1F600\n", count);
}

// Damages either file; a mismatch between the two may be reported for the other file.
void mutate_byte_bpe(int count) {
  const test::TemporaryFolder folder;
  test::small_byte_bpe(folder.path());
  const fs::path vocab = folder / "vocab.json";
  const std::string pieces = read_file(vocab), merges = read_file(folder / "merges.txt");
  int loaded = 0;
  for (int seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    const bool first = seed % 2 == 0;
    test::write_file(vocab, first ? test::mutate(pieces, static_cast<std::uint64_t>(seed)) : pieces);
    test::write_file(folder / "merges.txt", first ? merges : test::mutate(merges, static_cast<std::uint64_t>(seed)));
    try {
      use(*data::load_tokenizer(vocab));
      ++loaded;
    } catch (const Error& error) {
      const std::string message = error.what();
      CHECK(message.starts_with(folder.path().string() + "/"));
      CHECK_FALSE(data::invalid_utf8(message).has_value());
    }
  }
  CHECK(loaded < count);
}

void mutate_sentencepiece(int count) {
  const std::string plain = test::small_sentencepiece_model();
  mutate_vocabulary("plain.model", plain, count / 2);
  const std::string mapped = test::sentencepiece_model(
      {{"<unk>", 0, test::PieceType::unknown}, {"\u2581", -1}, {"a", -2}, {"\u2581a", -2}, {"the", -3}},
      test::character_map('A', "a"));
  mutate_vocabulary("mapped.model", mapped, count - count / 2);
}

void mutate_punkt(int count) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"abbrev_types.txt", "mr\nu.s\n. . \ncorp\ndr\ne.g\n"},
      {"collocations.tab", "##number##\tfig\na\tb\n"},
      {"sent_starters.txt", "besides\nhowever\nhe\n"},
      {"ortho_context.tab", "he\t118\nnavy\t4\nhowever\t18\nx\t0\nsmith\t12\n"}};
  const test::TemporaryFolder folder;
  int loaded = 0;
  for (int seed = 0; seed < count; ++seed) {
    const std::size_t damaged = static_cast<std::size_t>(seed) % files.size();
    CAPTURE(files[damaged].first, seed);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string& bytes = files[i].second;
      test::write_file(folder / files[i].first,
                       i == damaged ? test::mutate(bytes, static_cast<std::uint64_t>(seed)) : bytes);
    }
    loaded +=
        loads(folder / files[damaged].first,
              [&] {
                std::int64_t end = 0;
                for (const data::ByteSpan span : data::load_splitter("punkt:" + folder.path().string())->split(kText)) {
                  CHECK(span.begin >= end);
                  CHECK(span.end > span.begin);
                  end = span.end;
                }
                CHECK(end <= static_cast<std::int64_t>(kText.size()));
              })
            ? 1
            : 0;
  }
  CHECK(loaded < count);
}

// Texts of random bytes, mostly text-like: any text must be encoded and split.
void encode_damaged_texts(int count) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "vocab.txt", small_vocabulary());
  test::write_file(folder / "small.model", test::small_sentencepiece_model());
  test::write_file(folder / "abbrev_types.txt", "mr");
  test::write_file(folder / "collocations.tab", "a\tb");
  test::write_file(folder / "sent_starters.txt", "however");
  test::write_file(folder / "ortho_context.tab", "he\t118");
  const auto lower = data::load_tokenizer(folder / "vocab.txt");
  const auto cased = data::load_tokenizer(folder / "vocab.txt", {.do_lower_case = false});
  const auto sentencepiece = data::load_tokenizer(folder / "small.model");
  const auto punkt = data::load_splitter("punkt:" + folder.path().string());
  const auto icu = data::load_splitter("icu");
  for (int seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    const std::string text = test::mutate(kText, static_cast<std::uint64_t>(seed));
    CHECK(lower->encode_ids(text) == lower->encode(text).ids);
    CHECK(cased->encode_ids(text) == cased->encode(text).ids);
    CHECK(sentencepiece->encode_ids(text) == sentencepiece->encode(text).ids);
    for (const auto* splitter : {punkt.get(), icu.get()}) {
      std::int64_t end = 0;
      for (const data::ByteSpan span : splitter->split(text)) {
        CHECK(span.begin >= end);
        CHECK(span.end > span.begin);
        end = span.end;
      }
      CHECK(end <= static_cast<std::int64_t>(text.size()));
    }
  }
}

}  // namespace

TEST_CASE("mutants are the same in every run, differ from each other and stay in proportion", "[data][text]") {
  const std::string bytes = small_vocabulary();
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::string mutant = test::mutate(bytes, seed);
    REQUIRE(mutant == test::mutate(bytes, seed));
    REQUIRE(mutant.size() <= 2 * bytes.size() + 256);
    REQUIRE(test::mutate("", seed).size() <= 256);
    changed += mutant != bytes && mutant != test::mutate(bytes, seed + 1) ? 1 : 0;
  }
  REQUIRE(changed > 480);
}

TEST_CASE("a damaged WordPiece vocabulary is an error or works", "[data][text]") {
  mutate_wordpiece(kFew);
}

TEST_CASE("a damaged SentencePiece model is an error or works", "[data][text]") {
  mutate_sentencepiece(kFew);
}

TEST_CASE("a damaged vocabulary of byte-pair codes or of words is an error or works", "[data][text]") {
  mutate_subword(kFew);
}

TEST_CASE("a damaged vocabulary of characters is an error or works", "[data][text]") {
  mutate_characters(kFew);
}

TEST_CASE("a damaged byte-level vocabulary or its merges are an error or work", "[data][text]") {
  mutate_byte_bpe(kFew);
}

TEST_CASE("damaged Punkt tables are an error or work", "[data][text]") {
  mutate_punkt(kFew);
}

TEST_CASE("damaged texts can be tokenized and split", "[data][text]") {
  encode_damaged_texts(kFew);
}

TEST_CASE("5,000 mutants of each text file, and of texts", "[data][text][slow]") {
  mutate_wordpiece(kMany);
  mutate_sentencepiece(kMany);
  mutate_subword(kMany);
  mutate_characters(kMany);
  mutate_byte_bpe(kMany);
  mutate_punkt(kMany);
  encode_damaged_texts(kMany);
}

TEST_CASE("mutants of a real model and its character map", "[data][text][slow]") {
  const auto folder = test::real_data_folder();
  if (!folder) return test::skip("no real data");
  const fs::path model = *folder / "vocab" / "albert_30k_spiece.model";
  if (!fs::exists(model)) return test::skip("no vocabulary albert_30k_spiece.model");
  mutate_vocabulary("albert.model", read_file(model), 100);
}
