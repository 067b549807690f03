// The core of byte-pair encoding: repeatedly merges the most frequent pair of neighbouring pieces in the words to one
// piece (Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016).
//
// After a merge, only the changed words update the counts of pairs, and the best pair comes from a heap, so a merge
// costs what it changes.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace etc::data {

using Piece = std::int32_t;
using PiecePair = std::pair<Piece, Piece>;

struct PairHash {
  std::size_t operator()(const PiecePair& pair) const {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(pair.first) * 0x9E3779B97F4A7C15ull +
                                    static_cast<std::uint64_t>(pair.second) * 0xC2B2AE3D27D4EB4Full);
  }
};

// Pieces of words by their spelling, numbered in the order of insertion. Equal spellings are one piece.
class PieceTable {
 public:
  Piece add(const std::string& spelling);
  std::optional<Piece> find(const std::string& spelling) const;
  const std::string& spelling(Piece piece) const { return spellings_[static_cast<std::size_t>(piece)]; }
  std::int64_t size() const { return std::ssize(spellings_); }
  std::vector<std::string> take() { return std::move(spellings_); }

 private:
  std::vector<std::string> spellings_;
  std::unordered_map<std::string, Piece> numbers_;
};

struct MergeRules {
  std::int64_t least_count = 2;  // minimum of occurrences of a pair to be merged
  // Among equally frequent pairs, false merges the one with the lowest spelling, true the one with the highest; the
  // first pieces' spellings are compared, then the second ones'.
  bool last_spelling_first = false;
  // The spelling of a merged pair.
  std::string (*join)(const std::string& first, const std::string& second) = nullptr;
};

class PairMerger {
 public:
  struct Word {
    std::vector<Piece> pieces;
    std::int64_t count = 0;
  };

  // pieces: all pieces of the words; merged ones are added. It must outlive the merger. The merges do not depend on the
  // order of the words.
  PairMerger(std::vector<Word> words, PieceTable& pieces, const MergeRules& rules);

  // Merges the most frequent pair; nullopt: no remaining pair occurs least_count times.
  std::optional<PiecePair> merge_next();

 private:
  struct Occurrence {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // that may hold the pair; may have duplicates
  };
  struct Candidate {
    std::int64_t count;
    PiecePair pair;
    std::string first, second;  // spellings
  };
  struct Later {  // whether a is merged after b
    bool last_spelling_first;
    bool operator()(const Candidate& a, const Candidate& b) const {
      if (a.count != b.count) return a.count < b.count;
      const bool spelled_later = std::tie(a.first, a.second) > std::tie(b.first, b.second);
      const bool spelled_earlier = std::tie(a.first, a.second) < std::tie(b.first, b.second);
      return last_spelling_first ? spelled_earlier : spelled_later;
    }
  };

  void count_pairs(std::uint32_t word, std::int64_t sign, Piece fresh);
  void push(const PiecePair& pair, std::int64_t count);
  void merge(const PiecePair& pair);

  std::vector<Word> words_;
  PieceTable& pieces_;
  MergeRules rules_;
  std::unordered_map<PiecePair, Occurrence, PairHash> pairs_;
  std::unordered_set<PiecePair, PairHash> touched_;                      // by the current merge
  std::priority_queue<Candidate, std::vector<Candidate>, Later> queue_;  // outdated entries have another count
};

}  // namespace etc::data
