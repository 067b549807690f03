#include "data/text/byte_words.h"

#include <array>
#include <unordered_map>

#include "data/text/unicode.h"

namespace etc::data {

namespace {

enum class CharacterClass { letter, number, white_space, other };

CharacterClass class_of(char32_t c) {
  if (c < 0x80) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter) return CharacterClass::letter;
    if (c >= '0' && c <= '9') return CharacterClass::number;
    return is_white_space(c) ? CharacterClass::white_space : CharacterClass::other;
  }
  if (is_letter(c)) return CharacterClass::letter;
  if (is_number(c)) return CharacterClass::number;
  return is_white_space(c) ? CharacterClass::white_space : CharacterClass::other;
}

class PatternWalk {
 public:
  explicit PatternWalk(std::string_view text) : text_(text) {}

  // The end of the word that begins at `at` < size. Tries the pattern's alternatives in their order.
  std::size_t word_end(std::size_t at) const {
    if (const std::size_t size = contraction(text_.substr(at)); size > 0) return at + size;
    const bool blank = text_[at] == ' ' && at + 1 < text_.size() && class_at(at + 1) != CharacterClass::white_space;
    const std::size_t first = blank ? at + 1 : at;
    const CharacterClass kind = class_at(first);
    if (kind != CharacterClass::white_space) return run_end(first, kind).end;
    // White space of more than one character before a word leaves its last character to that word.
    const Run run = run_end(at, kind);
    return run.end == text_.size() || run.last == at ? run.end : run.last;
  }

 private:
  struct Run {
    std::size_t end, last;  // one past the run; start of its last character
  };

  static std::size_t contraction(std::string_view rest) {
    if (!rest.starts_with('\'')) return 0;
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (rest.starts_with(ending)) return ending.size();
    }
    return 0;
  }

  CharacterClass class_at(std::size_t at) const { return class_of(next_code_point(text_, at)); }

  Run run_end(std::size_t begin, CharacterClass kind) const {
    Run run{begin, begin};
    for (std::size_t next = begin; run.end < text_.size(); run.end = next) {
      if (class_of(next_code_point(text_, next)) != kind) break;
      run.last = run.end;
    }
    return run;
  }

  std::string_view text_;
};

struct Alphabet {
  std::array<std::string, 256> letters;
  std::unordered_map<char32_t, char> bytes;

  Alphabet() {
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      const char32_t letter = printable ? byte : next++;
      append_utf8(letters[byte], letter);
      bytes[letter] = static_cast<char>(static_cast<unsigned char>(byte));
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

void for_each_byte_word(std::string_view utf8, const VisitWord& visit) {
  const PatternWalk walk(utf8);
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t end = walk.word_end(at);
    visit(utf8.substr(at, end - at));
    at = end;
  }
}

const std::string& byte_letter(unsigned char byte) {
  return alphabet().letters[byte];
}

std::string byte_letters(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) letters += byte_letter(static_cast<unsigned char>(byte));
  return letters;
}

std::string bytes_of_letters(std::string_view utf8) {
  std::string bytes;
  for (std::size_t at = 0; at < utf8.size();) {
    const char32_t letter = next_code_point(utf8, at);
    const auto found = alphabet().bytes.find(letter);
    if (found == alphabet().bytes.end()) {
      append_utf8(bytes, letter);
    } else {
      bytes += found->second;
    }
  }
  return bytes;
}

std::vector<std::string> sentencepiece_spelling(const std::vector<std::string>& pieces) {
  std::string bytes;
  std::vector<std::size_t> ends;
  for (const std::string& piece : pieces) {
    bytes += bytes_of_letters(piece);
    ends.push_back(bytes.size());
  }
  std::vector<std::string> spelled;
  std::size_t at = 0;
  for (const std::size_t end : ends) {
    std::string& piece = spelled.emplace_back();
    while (at < end) {
      const char32_t c = next_code_point(bytes, at);
      c == U' ' ? piece.append("\u2581") : (append_utf8(piece, c), piece);
    }
  }
  return spelled;
}

std::string joined_byte_pieces(const std::vector<std::string>& pieces) {
  std::string letters;
  for (const std::string& piece : pieces) letters += piece;
  const std::string text = to_utf8(to_code_points(bytes_of_letters(letters)));
  return std::string(strip(text));
}

}  // namespace etc::data
