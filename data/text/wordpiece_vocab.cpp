#include "data/text/wordpiece_vocab.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "data/text/characters.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::data {

namespace {

constexpr std::size_t kLongestWordBytes = 4 * kLongestWord;                                      // of UTF-8
constexpr std::array<std::uint64_t, 2> kSeeds = {0xCBF29CE484222325ull, 0x9AE16A3B2F90404Full};  // by Place

// One step of the hash: byte by byte (FNV-1a with a longer multiplier), so that the hashes of all prefixes of a word
// come from one pass over it. The upper bits, which depend on every byte, choose the slot.
inline std::uint64_t hash_step(std::uint64_t hash, char byte) {
  return (hash ^ static_cast<unsigned char>(byte)) * 0x9E3779B97F4A7C15ull;
}

std::uint64_t hash_of(std::string_view key, std::uint64_t seed) {
  for (const char byte : key) seed = hash_step(seed, byte);
  return seed;
}

std::uint32_t check_bits(std::uint64_t hash, std::uint32_t place) {
  return (static_cast<std::uint32_t>(hash) & ~1u) | place;
}

}  // namespace

WordPieceVocab::WordPieceVocab(std::string bytes, const std::string& where) : bytes_(std::move(bytes)) {
  if (bytes_.empty()) fail(where, "the vocabulary is empty: expected one piece per line");
  if (const auto at = invalid_utf8(bytes_)) {
    const auto line = 1 + std::count(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(*at), '\n');
    fail(where, "line {}: byte {} is not valid UTF-8 (is this a vocabulary? SentencePiece models end in .model)", line,
         *at);
  }
  read_lines();
  unknown_ = find("[UNK]");
  if (unknown_ < 0) fail(where, "the vocabulary has no [UNK]: expected a BERT vocabulary, one piece per line");
}

void WordPieceVocab::read_lines() {
  const auto lines = static_cast<std::size_t>(std::count(bytes_.begin(), bytes_.end(), '\n')) + 1;
  const std::size_t capacity = std::bit_ceil(4 * lines);  // a line may have two entries
  slots_.resize(capacity);
  shift_ = 64 - std::countr_zero(capacity);
  pieces_.reserve(lines);
  const std::string_view text = bytes_;
  for (std::size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view piece = strip(text.substr(begin, end - begin));
    begin = end + 1;
    if (find(piece) >= 0) {
      if (repeated_.count++ == 0) repeated_.first_line = static_cast<std::int64_t>(line);
      continue;
    }
    const std::int32_t id = size();
    pieces_.push_back(
        {static_cast<std::uint32_t>(piece.data() - text.data()), static_cast<std::uint32_t>(piece.size())});
    insert(kStart, id);
    if (piece.starts_with("##")) insert(kContinuation, id);
  }
}

void WordPieceVocab::insert(Place place, std::int32_t id) {
  const std::string_view key = key_of(id, place);
  const std::uint64_t hash = hash_of(key, kSeeds[place]);
  std::size_t at = hash >> shift_;
  while (slots_[at].id >= 0) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {check_bits(hash, place), id};
  longest_[place] = std::max(longest_[place], key.size());
}

inline std::int32_t WordPieceVocab::find(std::uint64_t hash, std::string_view key, Place place) const {
  const std::uint32_t check = check_bits(hash, place);
  for (std::size_t at = hash >> shift_; slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].check == check && key_of(slots_[at].id, place) == key) return slots_[at].id;
  }
  return -1;
}

std::int32_t WordPieceVocab::find(std::string_view piece) const {
  return find(hash_of(piece, kSeeds[kStart]), piece, kStart);
}

bool WordPieceVocab::append_ids(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (word.size() > kLongestWord &&
      (word.size() > kLongestWordBytes || std::cmp_greater(character_count(word), kLongestWord))) {
    ids.push_back(unknown_);
    return false;
  }
  const std::size_t pieces_before = ids.size();
  std::array<std::uint64_t, kLongestWordBytes + 1> prefix_hash;  // [n]: of the first n bytes of the rest
  Place place = kStart;
  while (!word.empty()) {
    std::size_t length = std::min(word.size(), longest_[place]);
    prefix_hash[0] = kSeeds[place];
    for (std::size_t n = 0; n < length; ++n) prefix_hash[n + 1] = hash_step(prefix_hash[n], word[n]);
    // Comparing bytes is comparing characters: a piece is well-formed UTF-8, so it cannot end inside a character.
    std::int32_t id = -1;
    while (length > 0 && (id = find(prefix_hash[length], word.substr(0, length), place)) < 0) --length;
    if (id < 0) {
      ids.resize(pieces_before);
      ids.push_back(unknown_);
      return false;
    }
    ids.push_back(id);
    word.remove_prefix(length);
    place = kContinuation;
  }
  return true;
}

}  // namespace etc::data
