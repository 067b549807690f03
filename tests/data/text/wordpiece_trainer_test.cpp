// Vocabularies learned from text, compared with a naive learner that recounts everything at each merge.
#include "data/text/wordpiece_trainer.h"

#include <algorithm>
#include <map>

#include "data/text/tokenizer.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::data;

namespace {

using Words = std::vector<std::string>;
constexpr std::size_t kSpecial = 104;

TextSource source_of(const Words& texts) {
  return [&texts](const auto& visit) {
    for (const std::string& text : texts) visit(text);
  };
}

// Merged pieces in order: count all pairs, merge the most frequent (of equal ones the first in spelling), repeat.
Words naive_merges(const WordCounts& counts, std::size_t merges, std::int64_t least) {
  std::map<Words, std::int64_t> words;
  for (const auto& [word, count] : counts) {
    Words pieces;
    for (const char32_t c : to_code_points(word)) pieces.push_back((pieces.empty() ? "" : "##") + to_utf8({&c, 1}));
    words[pieces] += count;
  }
  Words merged;
  while (merged.size() < merges) {
    std::map<std::pair<std::string, std::string>, std::int64_t> pairs;
    for (const auto& [pieces, count] : words) {
      for (std::size_t i = 0; i + 1 < pieces.size(); ++i) pairs[{pieces[i], pieces[i + 1]}] += count;
    }
    auto best = pairs.end();
    for (auto pair = pairs.begin(); pair != pairs.end(); ++pair) {
      if (pair->second >= least && (best == pairs.end() || pair->second > best->second)) best = pair;
    }
    if (best == pairs.end()) break;
    const auto& [first, second] = best->first;
    const std::string both = first + second.substr(2);
    if (std::find(merged.begin(), merged.end(), both) == merged.end()) merged.push_back(both);
    std::map<Words, std::int64_t> next;
    for (const auto& [pieces, count] : words) {
      Words shorter;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const bool here = i + 1 < pieces.size() && pieces[i] == first && pieces[i + 1] == second;
        shorter.push_back(here ? both : pieces[i]);
        if (here) ++i;
      }
      next[shorter] += count;
    }
    words = next;
  }
  return merged;
}

const Words kTexts = {
    "The rain in Spain stays mainly in the plain, the rain again.", "Banana, bananas, ananas! A cabana can ban a nab.",
    "\u00dcber \u4e2d\u6587 the r\u00e9sum\u00e9s", "ababab abab ab bababa 1010 1011", "the the the then there these"};

}  // namespace

TEST_CASE("learned pieces are those of a learner that counts everything anew", "[data][text]") {
  const WordCounts counts = count_words(source_of(kTexts), true);
  CHECK(counts.at("the") == 7);
  CHECK(counts.at(".") == 2);
  WordpieceTraining training;
  training.size = 10'000;
  for (const std::int64_t least : {1, 2, 3}) {
    training.least_count = least;
    const Words pieces = learn_wordpiece(counts, training);
    const Words expected = naive_merges(counts, 10'000, least);
    CAPTURE(least, expected.size());
    REQUIRE(std::ssize(expected) > (least == 1 ? 40 : 5));
    REQUIRE(pieces.size() > kSpecial + expected.size());
    CHECK(Words(pieces.end() - std::ssize(expected), pieces.end()) == expected);
  }
}

TEST_CASE("a vocabulary begins with special pieces and characters, and is no longer than asked for", "[data][text]") {
  const WordCounts counts = count_words(source_of(kTexts), true);
  WordpieceTraining training;
  training.size = 155;
  const Words pieces = learn_wordpiece(counts, training);
  REQUIRE(pieces.size() == 155);
  CHECK(pieces[0] == "[PAD]");
  CHECK(pieces[1] == "[unused0]");
  CHECK(pieces[100] == "[UNK]");
  CHECK(Words(pieces.begin() + 101, pieces.begin() + 104) == Words{"[CLS]", "[SEP]", "[MASK]"});
  CHECK(pieces[kSpecial] == "a");  // the most frequent character
  Words sorted = pieces;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  for (const char* piece : {"\u4e2d", "##n", "u", ",", "the"}) {
    CHECK(std::find(pieces.begin(), pieces.end(), piece) != pieces.end());
  }
  CHECK(std::find(pieces.begin(), pieces.end(), "##,") == pieces.end());
  training.size = 110;
  CHECK_THROWS_AS(learn_wordpiece(counts, training), UsageError);
  CHECK_THROWS_WITH(learn_wordpiece({}, training), Catch::Contains("no word"));
}

TEST_CASE("rare characters beyond the limit take their words with them", "[data][text]") {
  WordpieceTraining training;
  training.most_characters = 3;
  const Words pieces = learn_wordpiece({{"aab", 5}, {"aac", 4}, {"aad", 3}, {"d", 1}}, training);
  CHECK(Words(pieces.begin() + kSpecial, pieces.end()) ==
        Words{"a", "b", "c", "##a", "##b", "##c", "aa", "aab", "aac"});
}

TEST_CASE("any number of threads learns the same pieces, also where rare words are forgotten", "[data][text]") {
  Words texts;
  for (int i = 0; i < 3000; ++i) texts.push_back(fmt::format("w{} v{} common words x{}", i % 97, i % 13, i));
  const int before = thread_count();
  std::vector<Words> learned;
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const WordCounts counts = count_words(source_of(texts), true, 200);
    CHECK(counts.size() <= 100);
    CHECK(counts.at("common") == 3000);
    WordpieceTraining training;
    training.size = 200;
    learned.push_back(learn_wordpiece(counts, training));
  }
  set_thread_count(before);
  CHECK(learned[0] == learned[1]);
}

TEST_CASE("whatever the text, the tokenizer takes the vocabulary and knows its words", "[data][text]") {
  std::string text;
  for (const std::string& some : kTexts) text += some + "\n";
  const test::TemporaryFolder folder;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Words texts = {test::mutate(text, seed)};
    const WordCounts counts = count_words(source_of(texts), seed % 2 == 0);
    WordpieceTraining training;
    training.size = 400;
    training.lower_case = seed % 2 == 0;
    if (counts.empty()) {
      CHECK_THROWS_AS(learn_wordpiece(counts, training), Error);
      continue;
    }
    std::string lines;
    for (const std::string& piece : learn_wordpiece(counts, training)) lines += piece + "\n";
    test::write_file(folder / "vocab.txt", lines);
    const auto tokenizer = load_tokenizer(folder / "vocab.txt", {.do_lower_case = training.lower_case});
    CHECK(tokenizer->encode(texts[0]).unknown_words.empty());
  }
}
