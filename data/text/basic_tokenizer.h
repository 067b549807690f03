// Text → words, as BERT's basic tokenizer cuts it (etc-core 11.1, steps 1 to 5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etc::data {

// The words of a text: control characters, U+0000 and U+FFFD dropped, cut at white space, every CJK ideograph and
// every punctuation character a word of its own. With `lower_case` each run without white space is lower-cased (full
// mappings, final sigma), decomposed and loses its marks of category Mn. Invalid UTF-8 is dropped. No word is empty.
std::vector<std::string> basic_tokenize(std::string_view utf8, bool lower_case);

namespace basic_tokenizer_detail {

// Class of a byte of the text. The classes are bits, so that the OR over a run tells which classes it contains.
enum ByteClass : std::uint8_t { kPlain = 0, kUpper = 1, kPunctuation = 2, kDropped = 4, kSpace = 8, kNotAscii = 16 };

constexpr std::array<std::uint8_t, 256> byte_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    std::uint8_t found = kPlain;
    if (c >= 0x80) {
      found = kNotAscii;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      found = kSpace;
    } else if (c < 0x20 || c == 0x7F) {
      found = kDropped;
    } else if (c >= 'A' && c <= 'Z') {
      found = kUpper;
    } else if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) {
      found = kPunctuation;
    }
    classes[static_cast<std::size_t>(c)] = found;
  }
  return classes;
}

inline constexpr std::array<std::uint8_t, 256> kClasses = byte_classes();

// Appends the words of the run that begins at byte `begin` and ends at white space, with the full Unicode rules;
// returns the end of the run.
std::size_t unicode_words(std::string_view utf8, std::size_t begin, bool lower_case, std::vector<std::string>& words);

}  // namespace basic_tokenizer_detail

// Calls emit(std::string_view) for every word of basic_tokenize in order, without a string per word. Runs of
// ASCII, nearly all of English text, never reach ICU; words that need no change are views of the text itself.
template <typename Emit>
void for_each_word(std::string_view utf8, bool lower_case, Emit&& emit) {
  using namespace basic_tokenizer_detail;
  const std::size_t size = utf8.size();
  const auto class_at = [&](std::size_t at) { return kClasses[static_cast<unsigned char>(utf8[at])]; };
  const std::uint8_t harmless = lower_case ? kPlain : kUpper;
  std::string word;
  std::vector<std::string> words;
  for (std::size_t at = 0;;) {
    while (at < size && class_at(at) == kSpace) ++at;
    if (at == size) return;
    const std::size_t begin = at;
    std::uint8_t seen = 0;
    for (; at < size; ++at) {
      const std::uint8_t found = class_at(at);
      if (found >= kSpace) {
        seen |= found & kNotAscii;
        break;
      }
      seen |= found;
    }
    if (seen & kNotAscii) {
      // Case and accents depend on the whole run (final sigma), so it is processed again from its beginning.
      words.clear();
      at = unicode_words(utf8, begin, lower_case, words);
      for (const std::string& found : words) emit(std::string_view(found));
      continue;
    }
    if ((seen & ~harmless) == 0) {
      emit(utf8.substr(begin, at - begin));
      continue;
    }
    word.clear();
    for (std::size_t i = begin; i < at; ++i) {
      const std::uint8_t found = class_at(i);
      if (found == kPunctuation) {
        if (!word.empty()) emit(std::string_view(word));
        word.clear();
        emit(utf8.substr(i, 1));
      } else if (found != kDropped) {
        word += static_cast<char>(utf8[i] + (lower_case && found == kUpper ? 'a' - 'A' : 0));
      }
    }
    if (!word.empty()) emit(std::string_view(word));
  }
}

}  // namespace etc::data
