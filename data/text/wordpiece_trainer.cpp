#include "data/text/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "data/text/pair_merger.h"
#include "data/text/wordpiece_vocab.h"
#include "etc_core/base/error.h"

namespace etc::data {

namespace {

constexpr int kUnusedPieces = 99;

// Special pieces with the ids that they have in BERT's vocabularies.
std::vector<std::string> special_pieces() {
  std::vector<std::string> pieces{"[PAD]"};
  for (int i = 0; i < kUnusedPieces; ++i) pieces.push_back(fmt::format("[unused{}]", i));
  for (const char* piece : {"[UNK]", "[CLS]", "[SEP]", "[MASK]"}) pieces.emplace_back(piece);
  return pieces;
}

// "##a" and "##ble" give "##able"; "a" and "##ble" give "able".
std::string merged_spelling(const std::string& first, const std::string& second) {
  return first + second.substr(2);
}

class WordpieceTrainer {
 public:
  WordpieceTrainer(const WordCounts& counts, const WordpieceTraining& training) : training_(training) {
    // Sorted, because the map's order depends on hash values.
    std::vector<std::pair<std::string, std::int64_t>> words(counts.begin(), counts.end());
    std::sort(words.begin(), words.end());
    choose_characters(words);
    for (const auto& [spelling, count] : words) add_word(spelling, count);
  }

  std::vector<std::string> learn() {
    PairMerger merger(std::move(words_), pieces_, {.least_count = training_.least_count, .join = merged_spelling});
    while (size() < training_.size && merger.merge_next()) {
    }
    std::vector<std::string> all = special_pieces();
    for (std::string& piece : pieces_.take()) all.push_back(std::move(piece));
    return all;
  }

 private:
  std::int64_t size() const { return special_pieces_ + pieces_.size(); }

  void choose_characters(const std::vector<std::pair<std::string, std::int64_t>>& words) {
    std::map<std::string, std::int64_t> counts;
    std::map<std::string, bool> inside;
    for (const auto& [spelling, count] : words) {
      const std::vector<std::string> characters = characters_of(spelling);
      if (characters.size() > kLongestWord) continue;
      for (std::size_t i = 0; i < characters.size(); ++i) {
        counts[characters[i]] += count;
        inside[characters[i]] |= i > 0;
      }
    }
    if (counts.empty()) fail("learn vocabulary", "no word in the texts: expected at least one");
    std::vector<std::pair<std::int64_t, std::string>> ranked;
    for (const auto& [character, count] : counts) ranked.emplace_back(-count, character);
    std::sort(ranked.begin(), ranked.end());
    const auto most = static_cast<std::size_t>(training_.most_characters);
    if (ranked.size() > most) ranked.resize(most);
    for (const auto& [rank, character] : ranked) pieces_.add(character);
    for (const auto& [rank, character] : ranked) {
      if (inside[character]) pieces_.add("##" + character);
    }
    if (size() > training_.size) {
      fail_usage("learn vocabulary", "expected a size of at least {} ({} special pieces, {} characters), got {}",
                 size(), special_pieces_, ranked.size(), training_.size);
    }
  }

  void add_word(const std::string& spelling, std::int64_t count) {
    const std::vector<std::string> characters = characters_of(spelling);
    if (characters.size() > kLongestWord) return;
    PairMerger::Word word;
    word.count = count;
    for (const std::string& character : characters) {
      const auto piece = pieces_.find(word.pieces.empty() ? character : "##" + character);
      if (!piece) return;
      word.pieces.push_back(*piece);
    }
    if (word.pieces.size() > 1) words_.push_back(std::move(word));
  }

  const WordpieceTraining& training_;
  const std::int64_t special_pieces_ = std::ssize(special_pieces());
  PieceTable pieces_;  // numbered after the special ones
  std::vector<PairMerger::Word> words_;
};

}  // namespace

std::vector<std::string> learn_wordpiece(const WordCounts& words, const WordpieceTraining& training) {
  return WordpieceTrainer(words, training).learn();
}

}  // namespace etc::data
