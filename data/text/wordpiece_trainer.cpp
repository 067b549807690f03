#include "data/text/wordpiece_trainer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "data/text/basic_tokenizer.h"
#include "data/text/unicode.h"
#include "data/text/wordpiece_vocab.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"

namespace etc::data {

namespace {

constexpr int kUnusedPieces = 99;

// ---- Counting. ----

void count_text(std::string_view text, bool lower_case, WordCounts& counts) {
  for_each_word(text, lower_case, [&](std::string_view word) {
    constexpr std::size_t kLongestCharacter = 4;  // bytes
    if (word.size() > kLongestWord * kLongestCharacter) return;
    const auto found = counts.find(word);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace(word, 1);
    }
  });
}

// Forgets words until half of the room is free: those with fewer occurrences than any that stay.
void forget_rare(WordCounts& counts, std::size_t most_words) {
  for (std::int64_t least = 2; counts.size() > most_words / 2; ++least) {
    std::erase_if(counts, [&](const auto& word) { return word.second < least; });
  }
}

// Texts that are counted by all threads together.
class CountedBatch {
 public:
  CountedBatch(bool lower_case, std::size_t most_words) : lower_case_(lower_case), most_words_(most_words) {}

  void add(std::string_view text) {
    texts_.emplace_back(text);
    bytes_ += text.size();
    if (bytes_ >= kBatchBytes) count();
  }

  WordCounts finish() {
    count();
    return std::move(all_);
  }

 private:
  static constexpr std::size_t kBatchBytes = std::size_t{4} << 20, kTasks = 16;

  void count() {
    std::vector<WordCounts> parts(kTasks);
    parallel_for(static_cast<std::int64_t>(kTasks), [&](std::int64_t task) {
      const auto part = static_cast<std::size_t>(task);
      for (std::size_t i = part; i < texts_.size(); i += kTasks) count_text(texts_[i], lower_case_, parts[part]);
    });
    for (const WordCounts& part : parts) {
      for (const auto& [word, count] : part) all_[word] += count;
    }
    if (all_.size() > most_words_) forget_rare(all_, most_words_);
    texts_.clear();
    bytes_ = 0;
  }

  bool lower_case_;
  std::size_t most_words_;
  std::vector<std::string> texts_;
  std::size_t bytes_ = 0;
  WordCounts all_;
};

// ---- Learning. ----

using Piece = std::int32_t;
using Pair = std::pair<Piece, Piece>;
constexpr Piece kAnyPiece = -1;

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(pair.first) * 0x9E3779B97F4A7C15ull +
                                    static_cast<std::uint64_t>(pair.second) * 0xC2B2AE3D27D4EB4Full);
  }
};

struct Word {
  std::vector<Piece> pieces;
  std::int64_t count = 0;
};

std::vector<std::string> characters_of(const std::string& word) {
  std::vector<std::string> characters;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    next_code_point(word, at);
    characters.push_back(word.substr(begin, at - begin));
  }
  return characters;
}

// Special pieces at the places that BERT's vocabularies have them.
std::vector<std::string> special_pieces() {
  std::vector<std::string> pieces{"[PAD]"};
  for (int i = 0; i < kUnusedPieces; ++i) pieces.push_back(fmt::format("[unused{}]", i));
  for (const char* piece : {"[UNK]", "[CLS]", "[SEP]", "[MASK]"}) pieces.emplace_back(piece);
  return pieces;
}

// "##able" behind "##a" and "##ble", "able" behind "a" and "##ble".
std::string merged_spelling(const std::string& first, const std::string& second) {
  return first + second.substr(2);
}

class WordpieceTrainer {
 public:
  WordpieceTrainer(const WordCounts& counts, const WordpieceTraining& training)
      : training_(training), pieces_(special_pieces()) {
    // Sorted: the map's order is that of its hashes.
    std::vector<std::pair<std::string, std::int64_t>> words(counts.begin(), counts.end());
    std::sort(words.begin(), words.end());
    choose_characters(words);
    for (const auto& [spelling, count] : words) add_word(spelling, count);
  }

  std::vector<std::string> learn() {
    for (std::uint32_t w = 0; w < words_.size(); ++w) count_pairs(w, 1, kAnyPiece);
    for (const auto& [pair, occurrence] : pairs_) push(pair, occurrence.count);
    while (std::ssize(pieces_) < training_.size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end() || found->second.count != best.count) continue;  // counted anew since
      merge(best.pair);
    }
    return std::move(pieces_);
  }

 private:
  struct Occurrence {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // that may hold the pair; some of them twice
  };
  struct Candidate {
    std::int64_t count;
    Pair pair;
    std::string first, second;  // spellings, which decide between equal counts

    bool operator<(const Candidate& other) const {  // the largest is merged first
      if (count != other.count) return count < other.count;
      return std::tie(first, second) > std::tie(other.first, other.second);
    }
  };

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
    for (const auto& [rank, character] : ranked) add_piece(character);
    for (const auto& [rank, character] : ranked) {
      if (inside[character]) add_piece("##" + character);
    }
    if (std::ssize(pieces_) > training_.size) {
      fail_usage("learn vocabulary", "expected a size of at least {} ({} special pieces, {} characters), got {}",
                 pieces_.size(), special_pieces().size(), ranked.size(), training_.size);
    }
  }

  Piece add_piece(const std::string& spelling) {
    const auto [at, fresh] = numbers_.emplace(spelling, static_cast<Piece>(pieces_.size()));
    if (fresh) pieces_.push_back(spelling);
    return at->second;
  }

  void add_word(const std::string& spelling, std::int64_t count) {
    const std::vector<std::string> characters = characters_of(spelling);
    if (characters.size() > kLongestWord) return;
    Word word;
    word.count = count;
    for (const std::string& character : characters) {
      const auto piece = numbers_.find(word.pieces.empty() ? character : "##" + character);
      if (piece == numbers_.end()) return;
      word.pieces.push_back(piece->second);
    }
    if (word.pieces.size() > 1) words_.push_back(std::move(word));
  }

  // Adds or, with sign -1, takes away what a word counts for its pairs. fresh: pairs with this piece do not know the word
  // yet.
  void count_pairs(std::uint32_t word, std::int64_t sign, Piece fresh) {
    const Word& w = words_[word];
    for (std::size_t i = 0; i + 1 < w.pieces.size(); ++i) {
      const Pair pair{w.pieces[i], w.pieces[i + 1]};
      Occurrence& occurrence = pairs_[pair];
      occurrence.count += sign * w.count;
      const bool unknown = fresh == kAnyPiece || pair.first == fresh || pair.second == fresh;
      if (sign > 0 && unknown) occurrence.words.push_back(word);
      touched_.insert(pair);
    }
  }

  void push(const Pair& pair, std::int64_t count) {
    if (count < training_.least_count) return;
    queue_.push(
        {count, pair, pieces_[static_cast<std::size_t>(pair.first)], pieces_[static_cast<std::size_t>(pair.second)]});
  }

  void merge(const Pair& pair) {
    const Piece merged = add_piece(
        merged_spelling(pieces_[static_cast<std::size_t>(pair.first)], pieces_[static_cast<std::size_t>(pair.second)]));
    std::vector<std::uint32_t> words = std::move(pairs_[pair].words);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    touched_.clear();
    for (const std::uint32_t word : words) {
      count_pairs(word, -1, merged);
      replace(words_[word].pieces, pair, merged);
      count_pairs(word, 1, merged);
    }
    pairs_.erase(pair);
    for (const Pair& changed : touched_) {
      const auto found = pairs_.find(changed);
      if (found == pairs_.end()) continue;
      if (found->second.count <= 0) {
        pairs_.erase(found);
      } else {
        push(changed, found->second.count);
      }
    }
  }

  static void replace(std::vector<Piece>& pieces, const Pair& pair, Piece merged) {
    std::size_t to = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool here = i + 1 < pieces.size() && pieces[i] == pair.first && pieces[i + 1] == pair.second;
      pieces[to++] = here ? merged : pieces[i];
      if (here) ++i;
    }
    pieces.resize(to);
  }

  const WordpieceTraining& training_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, Piece> numbers_;  // of all but the special ones
  std::vector<Word> words_;
  std::unordered_map<Pair, Occurrence, PairHash> pairs_;
  std::unordered_set<Pair, PairHash> touched_;  // by the merge going on
  std::priority_queue<Candidate> queue_;        // with outdated entries, known by their count
};

}  // namespace

WordCounts count_words(const TextSource& texts, bool lower_case, std::size_t most_words) {
  CountedBatch batch(lower_case, most_words);
  texts([&](std::string_view text) { batch.add(text); });
  return batch.finish();
}

std::vector<std::string> learn_wordpiece(const WordCounts& words, const WordpieceTraining& training) {
  return WordpieceTrainer(words, training).learn();
}

}  // namespace etc::data
