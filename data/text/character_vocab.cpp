#include "data/text/character_vocab.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/text/sha256.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr std::string_view kHeading = "#characters", kCodePoint = "U+";
constexpr std::int32_t kUnknownCharacter = 1;
constexpr auto kFirstCharacter = static_cast<std::int32_t>(kCharacterSpecials.size());

// Whether this number is a valid code point of a character.
bool is_character(std::uint32_t number) {
  return number < 0xD800 || (number >= 0xE000 && number <= 0x10FFFF);
}

// The beginning of a line, for messages: a line of a damaged file may be the whole file, and may not be UTF-8.
std::string beginning_of(std::string_view line) {
  return to_utf8(to_code_points(line.substr(0, 40)));
}

char32_t read_code_point(std::string_view line, const std::string& where, std::int64_t number) {
  std::uint32_t value = 0;
  const char* const end = line.data() + line.size();
  if (line.starts_with(kCodePoint)) {
    const auto [read, error] = std::from_chars(line.data() + kCodePoint.size(), end, value, 16);
    if (error == std::errc() && read == end && is_character(value)) return static_cast<char32_t>(value);
  }
  fail(where, "line {}: expected a character like U+0041, got \"{}\"", number, beginning_of(line));
}

class CharacterTokenizer final : public Tokenizer {
 public:
  CharacterTokenizer(std::u32string characters, std::string where, std::string sha256)
      : characters_(std::move(characters)), where_(std::move(where)) {
    vocab_sha256_ = std::move(sha256);
    for (const char32_t c : characters_) ids_.emplace(c, kFirstCharacter + static_cast<std::int32_t>(ids_.size()));
  }

  Tokens encode(std::string_view utf8) const override {
    Tokens tokens;
    for (const char32_t c : to_code_points(utf8)) {
      tokens.pieces.push_back(to_utf8({&c, 1}));
      tokens.ids.push_back(id_of(c));
    }
    return tokens;
  }

  void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const override {
    for (std::size_t at = 0; at < utf8.size();) {
      const char32_t c = next_code_point(utf8, at);
      if (c != kNoCharacter) ids.push_back(id_of(c));
    }
  }

  std::int32_t piece_id(std::string_view piece) const override {
    for (std::size_t i = 0; i < kCharacterSpecials.size(); ++i) {
      if (piece == kCharacterSpecials[i]) return static_cast<std::int32_t>(i);
    }
    const std::u32string characters = to_code_points(piece);
    const auto found = characters.size() == 1 ? ids_.find(characters[0]) : ids_.end();
    if (found == ids_.end()) fail(where_, "no piece {}: expected one of the characters", std::string(piece));
    return found->second;
  }

  std::int32_t vocab_size() const override { return kFirstCharacter + static_cast<std::int32_t>(characters_.size()); }
  std::string piece(std::int32_t id) const override {
    if (id < kFirstCharacter) return std::string(kCharacterSpecials.at(static_cast<std::size_t>(id)));
    const char32_t c = characters_.at(static_cast<std::size_t>(id - kFirstCharacter));
    return to_utf8({&c, 1});
  }
  const char* kind() const override { return "characters"; }
  bool lower_case() const override { return false; }

 private:
  std::int32_t id_of(char32_t c) const {
    const auto found = ids_.find(c);
    return found == ids_.end() ? kUnknownCharacter : found->second;
  }

  std::u32string characters_;
  std::string where_;
  std::unordered_map<char32_t, std::int32_t> ids_;
};

}  // namespace

std::u32string parse_character_vocab(std::string_view text, const std::string& where) {
  std::u32string characters;
  std::unordered_map<char32_t, std::int64_t> lines;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1) {
      if (line == kHeading) continue;
      fail(where, "line 1: expected \"{}\", got \"{}\"", kHeading, beginning_of(line));
    }
    const char32_t c = read_code_point(line, where, number);
    const auto [first, fresh] = lines.emplace(c, number);
    if (!fresh) fail(where, "line {}: {} stands in line {} already", number, beginning_of(line), first->second);
    characters.push_back(c);
  }
  if (characters.empty()) fail(where, "expected at least one character, got none");
  return characters;
}

std::string character_vocab_text(std::u32string_view characters) {
  std::string text = std::string(kHeading) + "\n";
  for (const char32_t c : characters) text += fmt::format("U+{:04X}\n", static_cast<std::uint32_t>(c));
  return text;
}

std::u32string most_frequent_characters(const WordCounts& counts, std::int64_t most) {
  std::vector<std::pair<std::int64_t, char32_t>> order;  // negative count, so that frequent ones sort first
  for (const auto& [character, count] : counts) {
    const std::u32string one = to_code_points(character);
    if (one.size() == 1) order.emplace_back(-count, one[0]);
  }
  std::sort(order.begin(), order.end());
  if (most > 0 && most < std::ssize(order)) order.resize(static_cast<std::size_t>(most));
  std::u32string characters;
  for (const auto& [count, c] : order) characters.push_back(c);
  return characters;
}

std::unique_ptr<Tokenizer> load_characters(const std::filesystem::path& vocab) {
  const std::string text = read_file(vocab);
  return std::make_unique<CharacterTokenizer>(parse_character_vocab(text, vocab.string()), vocab.string(),
                                              sha256_hex(text));
}

}  // namespace etc::data
