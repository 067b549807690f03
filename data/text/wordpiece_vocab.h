// A WordPiece vocabulary: pieces ↔ ids, and the greedy cut of one word (etc-core 11.1, step 6).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace etc::data {

constexpr std::size_t kLongestWord = 200;  // characters; longer words become [UNK] and no pieces are learned from them

// Immutable after construction; any thread may use it.
class WordPieceVocab {
 public:
  // One piece per line, white space at both ends removed; ids count the lines from 0, without those that repeat a piece
  // (etc-core 11.1). `where` names the file in errors: empty, not UTF-8, no [UNK].
  WordPieceVocab(std::string bytes, const std::string& where);

  // The lines without an id of their own, because an earlier one has the same piece.
  struct RepeatedLines {
    std::int64_t count = 0;
    std::int64_t first_line = 0;  // from 1
  };
  const RepeatedLines& repeated() const { return repeated_; }

  std::int32_t size() const { return static_cast<std::int32_t>(pieces_.size()); }
  std::int32_t find(std::string_view piece) const;  // -1: not in the vocabulary
  std::string_view piece(std::int32_t id) const {
    const Piece& p = pieces_[static_cast<std::size_t>(id)];
    return std::string_view(bytes_).substr(p.begin, p.size);
  }

  // Appends the ids of a word: the longest piece that starts it, then the longest "##" piece that starts the rest, and
  // so on. One [UNK] for the whole word, and false, when the rest begins with no piece or the word is longer than 200
  // characters.
  // Allocates nothing but the growth of `ids`. Cost: one hash of the word, and per piece one probe for each length
  // tried.
  bool append_ids(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct Piece {
    std::uint32_t begin = 0;  // in bytes_
    std::uint32_t size = 0;
  };
  // Position of a key in a word: at the start, spelled like the piece, or later, spelled without the "##". Both kinds
  // share one table.
  enum Place : std::uint32_t { kStart, kContinuation };
  struct Slot {
    std::uint32_t check = 0;  // hash bits that do not select the slot; the lowest bit is the Place
    std::int32_t id = -1;     // -1: empty
  };

  void read_lines();
  void insert(Place place, std::int32_t id);
  std::int32_t find(std::uint64_t hash, std::string_view key, Place place) const;
  std::string_view key_of(std::int32_t id, Place place) const { return piece(id).substr(place == kStart ? 0 : 2); }

  std::string bytes_;  // the file
  std::vector<Piece> pieces_;
  std::vector<Slot> slots_;               // open addressing, a power of two, at most half full
  int shift_ = 0;                         // hash >> shift_ is the first slot to probe
  std::array<std::size_t, 2> longest_{};  // bytes of the longest key of each place
  std::int32_t unknown_ = -1;
  RepeatedLines repeated_;
};

}  // namespace etc::data
