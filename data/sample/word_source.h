// Words and random choices for generated records: pure functions of a seed, the same on any machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etc_core/base/random.h"

namespace etc::data {

// A counter-based stream of random choices.
class Choices {
 public:
  Choices(std::uint64_t seed, std::string_view file, std::uint64_t record) : key_(mix_key(seed, record)) {
    for (char c : file) key_ = mix_key(key_, static_cast<unsigned char>(c));
  }

  // Uniform in 0 … count-1, count >= 1; multiplies instead of taking a remainder.
  std::int64_t below(std::int64_t count) {
    const std::uint32_t bits = philox({next_++, 0, 0, 0}, key_)[0];
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(bits) * static_cast<std::uint64_t>(count)) >> 32);
  }

  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
  }

 private:
  std::uint64_t key_;
  std::uint32_t next_ = 0;
};

// `count` different pronounceable names of two syllables, none of which is a prefix of another; `first` is an offset
// into the list, so that people, places and regions do not share names. At most 144 in all.
inline std::vector<std::string> names(std::size_t first, std::size_t count) {
  static constexpr const char* kHeads[] = {"ba", "do", "fe", "gi", "ka", "lu", "mo", "ne", "pi", "ro", "su", "ta"};
  static constexpr const char* kTails[] = {"bren", "dar", "fol", "gust", "kin", "lund",
                                           "mar",  "nix", "pon", "rast", "sel", "vik"};
  std::vector<std::string> list;
  for (std::size_t i = first; i < first + count; ++i) list.push_back(std::string(kHeads[i % 12]) + kTails[i / 12 % 12]);
  return list;
}

// A WordPiece vocabulary of BERT's special tokens at BERT's places, followed by these words (task-wikihop, appendix B).
inline std::string bert_vocabulary(const std::set<std::string>& words) {
  std::string text = "[PAD]\n";
  for (int i = 0; i < 99; ++i) text += "[unused" + std::to_string(i) + "]\n";
  for (const char* special : {"[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "_"}) text += std::string(special) + "\n";
  for (const std::string& word : words) text += word + "\n";
  return text;
}

inline std::string capitalized(std::string word) {
  if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

}  // namespace etc::data
