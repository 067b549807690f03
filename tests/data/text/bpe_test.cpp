// Byte-pair codes learned and applied, compared with a naive learner that recounts everything at each merge and a naive
// applier that scans the whole word each time; the vocabulary file and its messages.
#include "data/text/bpe.h"

#include <algorithm>
#include <map>
#include <optional>

#include "data/text/subword_vocab.h"
#include "data/text/tokenizer.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::data;

namespace {

using Words = std::vector<std::string>;

// A word's symbols by hand: its characters, the last one marked.
Words symbols_of(const std::string& word) {
  Words symbols;
  for (const char32_t c : to_code_points(word)) symbols.push_back(to_utf8(std::u32string(1, c)));
  symbols.back() += "</w>";
  return symbols;
}

void merge_everywhere(Words& symbols, const Merge& merge) {
  Words merged;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const bool here = i + 1 < symbols.size() && symbols[i] == merge.first && symbols[i + 1] == merge.second;
    merged.push_back(here ? symbols[i] + symbols[i + 1] : symbols[i]);
    if (here) ++i;
  }
  symbols = merged;
}

// The definition: count all pairs, merge the most frequent one (of equal ones the largest), repeat.
std::vector<Merge> learned_slowly(const WordCounts& counts, std::size_t most) {
  std::vector<std::pair<Words, std::int64_t>> words;
  for (const auto& [word, count] : counts) words.emplace_back(symbols_of(word), count);
  std::vector<Merge> merges;
  while (merges.size() < most) {
    std::map<Merge, std::int64_t> pairs;
    for (const auto& [symbols, count] : words) {
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) pairs[{symbols[i], symbols[i + 1]}] += count;
    }
    std::pair<std::int64_t, Merge> best{1, {}};
    for (const auto& [pair, count] : pairs) best = std::max(best, {count, pair});
    if (best.first < 2) break;
    merges.push_back(best.second);
    for (auto& [symbols, count] : words) merge_everywhere(symbols, best.second);
  }
  return merges;
}

// The definition: merge the pair of lowest rank in the word everywhere, repeat.
Words cut_slowly(const std::string& word, const std::vector<Merge>& merges) {
  Words symbols = symbols_of(word);
  while (true) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rank = static_cast<std::size_t>(
          std::find(merges.begin(), merges.end(), Merge{symbols[i], symbols[i + 1]}) - merges.begin());
      if (rank < merges.size() && (!best || rank < *best)) best = rank;
    }
    if (!best) break;
    merge_everywhere(symbols, merges[*best]);
  }
  symbols.back().resize(symbols.back().size() - 4);
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) symbols[i] += "@@";
  return symbols;
}

Words cut(const std::string& word, const Bpe& bpe) {
  Words pieces;
  append_pieces(word, bpe, pieces);
  return pieces;
}

// Words of few letters, so that pairs tie, overlap and repeat; some letters have several bytes.
WordCounts made_words(std::uint64_t seed, std::uint32_t count) {
  static constexpr const char* kLetters[] = {"a", "a", "b", "\u00e4", "c", "\u4e2d"};
  WordCounts words;
  for (std::uint32_t w = 0; w < count; ++w) {
    const Philox4 dice = philox({w, 0, 0, 0}, seed);
    std::string word;
    for (std::uint32_t i = 0; i <= dice[0] % 9; ++i) word += kLetters[philox({w, i, 1, 0}, seed)[0] % 6];
    words[word] += 1 + dice[1] % 3;
  }
  return words;
}

const std::string kVocab =
    "#version: 0.2\nl o\nlo w</w>\ne r</w>\n#dictionary words=13a case=mixed\nlow 5\nlo@@ 3\nw@@ 3\ner 3\n, 1\n";

std::unique_ptr<Tokenizer> tokenizer_of(const test::TemporaryFolder& folder, const std::string& text) {
  test::write_file(folder / "v.bpe", text);
  return load_tokenizer(folder / "v.bpe");
}

}  // namespace

TEST_CASE("codes are those of a learner that counts anew at every merge", "[text][bpe]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const WordCounts words = made_words(seed, 10 + static_cast<std::uint32_t>(seed) * 3);
    CHECK(learn_bpe(words, 60) == learned_slowly(words, 60));
  }
}

TEST_CASE("of equally frequent pairs the largest spelling is merged first, and a pair that occurs once never",
          "[text][bpe]") {
  CHECK(learn_bpe({{"ab", 2}, {"cd", 2}, {"xy", 1}}, 9) == std::vector<Merge>{{"c", "d</w>"}, {"a", "b</w>"}});
  // "a a" occurs twice in each of two words "aaab", so it counts four times; it is merged from the left.
  CHECK(learn_bpe({{"aaab", 2}}, 9) == std::vector<Merge>{{"a", "a"}, {"aa", "a"}, {"aaa", "b</w>"}});
  CHECK(learn_bpe({{"ab", 5}}, 0).empty());
}

TEST_CASE("words are cut as by looking at the whole word each time, with codes in any order", "[text][bpe]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const WordCounts words = made_words(seed, 60);
    std::vector<Merge> merges = learn_bpe(words, 40);
    // Codes of other programs may be in any order and may repeat.
    if (seed % 2 == 1) std::rotate(merges.begin(), merges.begin() + std::ssize(merges) / 2, merges.end());
    if (seed % 4 == 3) merges.insert(merges.end(), merges.begin(), merges.begin() + std::ssize(merges) / 3);
    const Bpe bpe(merges);
    for (const auto& [word, count] : made_words(seed + 1000, 40)) CHECK(cut(word, bpe) == cut_slowly(word, merges));
  }
}

TEST_CASE("a word of a million characters is cut in little time", "[text][bpe]") {
  const Bpe bpe({{"a", "a"}, {"aa", "aa"}, {"b", "a"}, {"aaaa", "b"}});
  std::string word;
  while (word.size() < 1000000) word += "aaaab";
  std::vector<std::size_t> ends;
  bpe.cut(word, ends);
  CHECK(ends.back() == word.size());
  CHECK(ends.size() < word.size() / 3);
  std::vector<std::size_t> none;
  bpe.cut("", none);
  CHECK(none.empty());
}

TEST_CASE("pieces go on with @@, and undoing them gives the words again", "[text][bpe]") {
  const Bpe bpe({{"l", "o"}, {"lo", "w</w>"}, {"e", "r</w>"}});
  CHECK(cut("low", bpe) == Words{"low"});
  CHECK(cut("lower", bpe) == Words{"lo@@", "w@@", "er"});
  CHECK(undo_bpe("lo@@ w@@ er low a@@b @@ c") == "lower low a@@b c");
  CHECK(undo_bpe("lo@@") == "lo");  // a truncated translation
  CHECK(undo_bpe("").empty());
}

TEST_CASE("a dictionary goes by count, then by spelling, and is padded to a multiple of eight", "[text][bpe]") {
  const Bpe bpe(std::vector<Merge>{{"a", "b</w>"}});
  using Entries = std::vector<std::pair<std::string, std::int64_t>>;
  const Entries dictionary = make_dictionary({{"ab", 3}, {"cab", 2}, {"b", 5}, {"<unk>", 9}}, &bpe);
  // "<unk>" is an ordinary word of five characters here.
  CHECK(dictionary == Entries{{"<@@", 9},
                              {">", 9},
                              {"k@@", 9},
                              {"n@@", 9},
                              {"u@@", 9},
                              {"ab", 5},
                              {"b", 5},
                              {"c@@", 2},
                              {"madeupword0000", 0},
                              {"madeupword0001", 0},
                              {"madeupword0002", 0},
                              {"madeupword0003", 0}});
  CHECK(make_dictionary({{"ab", 3}, {"cab", 2}, {"b", 5}, {"</s>", 9}}, nullptr, 2) ==
        Entries{{"b", 5}, {"ab", 3}, {"madeupword0000", 0}, {"madeupword0001", 0}});
}

TEST_CASE("a vocabulary file is read as it was written", "[text][bpe]") {
  const SubwordVocab vocab = parse_subword_vocab(kVocab, "v");
  CHECK(subword_vocab_text(vocab) == kVocab);
  const test::TemporaryFolder folder;
  const auto tokenizer = tokenizer_of(folder, kVocab);
  CHECK(std::string(tokenizer->kind()) == "bpe");
  CHECK(tokenizer->vocab_size() == 9);
  CHECK(tokenizer->piece_id("</s>") == 2);
  CHECK(tokenizer->piece(5) == "lo@@");
  CHECK(tokenizer->encode("lower,low").pieces == Words{"lo@@", "w@@", "er", ",", "low"});
  CHECK(tokenizer->encode_ids("lower,low xlow") == std::vector<std::int32_t>{5, 6, 7, 8, 4, 3, 4});
  // A word spelled like a special piece does not get that piece's id.
  CHECK(tokenizer_of(folder, "#dictionary\nhigh 1\nlow 1\n")->encode_ids("</s> low") ==
        std::vector<std::int32_t>{3, 5});
}

TEST_CASE("the parts of other programs make a vocabulary, lines may end as on Windows", "[text][bpe]") {
  const test::TemporaryFolder folder;
  const auto tokenizer = tokenizer_of(folder, "#version: 0.2\r\nl o\r\n#dictionary\r\nlo@@ 2\r\nw 1\r\n");
  CHECK(tokenizer->encode_ids("low,") == std::vector<std::int32_t>{4, 3, 3});  // only blanks separate words
  CHECK(tokenizer->encode_ids("low LOW") == std::vector<std::int32_t>{4, 5, 3, 3, 3});
  const auto lower = tokenizer_of(folder, "#dictionary case=lower\nlow 1\n");
  CHECK(lower->encode_ids("low LOW high") == std::vector<std::int32_t>{4, 4, 3});
  CHECK(lower->lower_case());
  CHECK(std::string(lower->kind()) == "word");
}

TEST_CASE("what is wrong with a vocabulary is said with its line", "[text][bpe]") {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_subword_vocab(text, "v.bpe");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("") == "v.bpe: expected a vocabulary of translation (#version: 0.2 or #dictionary), got an empty file");
  CHECK(message("the 5\n") == "v.bpe: line 1: expected #version: 0.2 (codes) or #dictionary (words), got \"the 5\"");
  CHECK(message("#version: 0.1\n") ==
        "v.bpe: line 1: expected codes of version 0.2 (learn them again), got \"#version: 0.1\"");
  CHECK(message("#version: 0.2\na b\na b c\n") ==
        "v.bpe: line 3: expected a merge, two symbols with a blank between, or #dictionary, got \"a b c\"");
  CHECK(message("#version: 0.2\na b\n") ==
        "v.bpe: the codes end at line 2 without a line #dictionary and pieces behind it");
  CHECK(message("#dictionary words=moses\n") ==
        "v.bpe: line 1: expected words=13a, words=blanks, case=mixed or case=lower behind #dictionary, got "
        "\"#dictionary words=moses\"");
  CHECK(message("#dictionary\n") == "v.bpe: expected pieces behind #dictionary, got none");
  CHECK(message("#dictionary\na 1\nb\n") == "v.bpe: line 3: expected a piece, a blank and a count, got \"b\"");
  CHECK(message("#dictionary\na -1\n") == "v.bpe: line 2: expected a piece, a blank and a count, got \"a -1\"");
  CHECK(message("#dictionary\n<pad> 1\n") ==
        "v.bpe: line 2: the special pieces <s>, <pad>, </s> and <unk> are not listed, got \"<pad> 1\"");
  CHECK(message("#dictionary\na 1\na 2\n") ==
        "v.bpe: line 3: a piece comes twice (later ids would shift), got \"a 2\"");
  CHECK(message("#dictionary\na\xff 1\n") == "v.bpe: byte 13 is not UTF-8");
}
