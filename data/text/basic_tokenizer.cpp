#include "data/text/basic_tokenizer.h"

#include "data/text/unicode.h"

namespace etc::data {

namespace {

// The Unicode blocks that BERT surrounds with spaces; Hangul, kana and later extensions are not included.
bool is_cjk(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_word_break(char32_t c) {  // BERT counts symbols of ASCII ("$", "^") as punctuation, too
  if (c < 0x80) return basic_tokenizer_detail::kClasses[c] == basic_tokenizer_detail::kPunctuation;
  return is_punctuation(c);
}

// Appends the words of a run without white space and without characters to drop.
void split_at_punctuation(std::string_view run, std::vector<std::string>& words) {
  std::size_t word_begin = 0;
  for (std::size_t at = 0; at < run.size();) {
    const std::size_t begin = at;
    if (!is_word_break(next_code_point(run, at))) continue;
    if (begin > word_begin) words.emplace_back(run.substr(word_begin, begin - word_begin));
    words.emplace_back(run.substr(begin, at - begin));
    word_begin = at;
  }
  if (word_begin < run.size()) words.emplace_back(run.substr(word_begin));
}

}  // namespace

std::size_t basic_tokenizer_detail::unicode_words(std::string_view utf8, std::size_t begin, bool lower_case,
                                                  std::vector<std::string>& words) {
  std::string run;
  const auto finish = [&] {
    split_at_punctuation(lower_case ? strip_accents(data::lower_case(run)) : run, words);
    run.clear();
  };
  std::size_t at = begin;
  while (at < utf8.size()) {
    const std::size_t start = at;
    const char32_t c = next_code_point(utf8, at);
    if (c == kNoCharacter || c == 0 || c == 0xFFFD) continue;
    // Test for white space first, because tab, LF and CR are of category Cc. The information separators and U+0085 are
    // white space to Python, but BERT drops them as control characters before splitting.
    if (c == '\t' || c == '\n' || c == '\r' || is_separator(c) || c == 0x2028 || c == 0x2029) break;
    if (is_control(c)) continue;
    if (is_cjk(c)) {
      finish();
      run.assign(utf8.substr(start, at - start));
      finish();
    } else {
      run.append(utf8.substr(start, at - start));
    }
  }
  finish();
  return at;
}

std::vector<std::string> basic_tokenize(std::string_view utf8, bool lower_case) {
  std::vector<std::string> words;
  for_each_word(utf8, lower_case, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

}  // namespace etc::data
