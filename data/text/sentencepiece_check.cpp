#include "data/text/sentencepiece_check.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/varint.h"

namespace etc::data {

namespace {

[[noreturn]] void fail_damaged(const std::string& where, const char* what) {
  fail(where, "SentencePiece model: {} (the file is damaged)", what);
}

// The fields of a protocol-buffer message: a key (number, wire type), then a number or a length and bytes.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  // Calls visit(number, bytes) for every length-delimited field, and number(number, value) for every varint.
  void for_each(const std::function<void(std::uint64_t, std::string_view)>& visit,
                const std::function<void(std::uint64_t, std::uint64_t)>& number = {}) {
    while (!rest_.empty()) {
      const std::uint64_t key = take_varint();
      switch (key & 7) {
        case 0: {
          const std::uint64_t value = take_varint();
          if (number) number(key >> 3, value);
          break;
        }
        case 1:
          take(8);
          break;
        case 2: {
          const std::uint64_t size = take_varint();
          visit(key >> 3, take(size));
          break;
        }
        case 5:
          take(4);
          break;
        default:
          fail_damaged(where_, "not a protocol buffer");
      }
    }
  }

 private:
  std::uint64_t take_varint() {
    const auto value = etc::take_varint(rest_);
    if (!value) fail_damaged(where_, "not a protocol buffer, or cut short");
    return *value;
  }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) fail_damaged(where_, "not a protocol buffer, or cut short");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  const std::string& where_;
};

// The map: 4 bytes of trie size, the trie's units of 4 bytes, then the replacements, each terminated by a zero byte. A
// unit holds the label of the edge that leads to it, the offset of its children and whether a rule ends at it. If one
// does, the child with label 0 holds the offset of the rule's replacement (Yata's darts-clone).
class CharacterMap {
 public:
  CharacterMap(std::string_view map, const std::string& where) : where_(where) {
    std::uint32_t trie_bytes = 0;
    if (map.size() < sizeof trie_bytes) fail_damaged(where, "the character map is cut short");
    std::memcpy(&trie_bytes, map.data(), sizeof trie_bytes);
    map.remove_prefix(sizeof trie_bytes);
    if (trie_bytes > map.size()) fail_damaged(where, "the character map is cut short");
    units_.resize(trie_bytes / sizeof(std::uint32_t));
    if (units_.empty()) fail_damaged(where, "the character map has no trie");
    std::memcpy(units_.data(), map.data(), units_.size() * sizeof(std::uint32_t));
    replacements_ = map.substr(trie_bytes);
  }

  void check() {
    // most_rules[base]: one more than the largest number of rules on a path to these children; 0: not reached.
    std::vector<std::uint8_t> most_rules(units_.size(), 0);
    std::vector<Node> open = {{children(0, units_[0]), 0}};
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      // Children are at base ^ label for labels 0 … 255, within the aligned block of 256 units that contains base.
      if ((node.base | 0xFF) >= units_.size()) fail_damaged(where_, "an edge of the character map leads outside");
      if (most_rules[node.base] > node.rules) continue;
      most_rules[node.base] = static_cast<std::uint8_t>(node.rules + 1);
      for (std::uint32_t label = 0; label < 256; ++label) {
        const std::uint32_t child = node.base ^ label;
        const std::uint32_t unit = units_[child];
        if ((unit & 0x800000FFu) != label) continue;
        const std::uint32_t base = children(child, unit);
        const bool rule_ends = ((unit >> 8) & 1) != 0;
        if (rule_ends) check_replacement(base);
        const int rules = node.rules + (rule_ends ? 1 : 0);
        if (rules > kMostRules) fail_damaged(where_, "too many rules of the character map are prefixes of each other");
        open.push_back({base, rules});
      }
    }
  }

 private:
  static constexpr int kMostRules = 32;                     // capacity of the library's result array
  static constexpr std::size_t kLongestReplacement = 1024;  // NFKC needs 33 bytes

  struct Node {
    std::uint32_t base;
    int rules;
  };

  static std::uint32_t children(std::uint32_t at, std::uint32_t unit) {
    return at ^ ((unit >> 10) << ((unit & 0x200u) >> 6));
  }

  void check_replacement(std::uint32_t at) const {
    if (at >= units_.size()) fail_damaged(where_, "an edge of the character map leads outside");
    const std::uint32_t begin = units_[at] & 0x7FFFFFFFu;
    if (begin >= replacements_.size()) fail_damaged(where_, "a replacement of the character map lies outside");
    const std::string_view text = replacements_.substr(begin, kLongestReplacement);
    const std::size_t size = text.find('\0');
    if (size == std::string_view::npos) fail_damaged(where_, "a replacement of the character map has no end");
    if (invalid_utf8(text.substr(0, size))) fail_damaged(where_, "a replacement of the character map is not UTF-8");
  }

  const std::string& where_;
  std::vector<std::uint32_t> units_;
  std::string_view replacements_;
};

}  // namespace

void check_sentencepiece_bytes(std::string_view model, const std::string& where) {
  Fields(model, where).for_each([&](std::uint64_t number, std::string_view message) {
    constexpr std::uint64_t kNormalizer = 3, kDenormalizer = 5, kCharacterMap = 2;
    if (number != kNormalizer && number != kDenormalizer) return;
    Fields(message, where).for_each([&](std::uint64_t inner, std::string_view map) {
      if (inner == kCharacterMap && !map.empty()) CharacterMap(map, where).check();
    });
  });
}

std::vector<std::string> user_defined_pieces(std::string_view model, const std::string& where) {
  constexpr std::uint64_t kPieces = 1, kPiece = 1, kType = 3, kUserDefined = 4;
  std::vector<std::string> pieces;
  Fields(model, where).for_each([&](std::uint64_t number, std::string_view message) {
    if (number != kPieces) return;
    std::string_view text;
    std::uint64_t type = 0;
    Fields(message, where)
        .for_each(
            [&](std::uint64_t inner, std::string_view bytes) {
              if (inner == kPiece) text = bytes;
            },
            [&](std::uint64_t inner, std::uint64_t value) {
              if (inner == kType) type = value;
            });
    if (type == kUserDefined && !text.empty()) pieces.emplace_back(text);
  });
  return pieces;
}

}  // namespace etc::data
