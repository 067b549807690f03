#include "data/text/bleu_words.h"

#include <vector>

#include "data/text/unicode.h"

namespace etc::data {

namespace {

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_stop(char c) {
  return c == '.' || c == ',';
}

// Characters of 13a's first rule: {-~ [-` space-& (-+ :-@ /
bool stands_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// A pattern of two neighbours, replaced from left to right without overlap: where first(a) and second(b) hold, write(a,
// b) appends the replacement of both.
template <typename Units, typename First, typename Second, typename Write>
Units replace_pairs(const Units& text, const First& first, const Second& second, const Write& write) {
  Units result;
  result.reserve(text.size() + text.size() / 4);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      write(result, text[i], text[i + 1]);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Replacements of pairs, with blanks of the text's unit type.
template <typename Units, typename Unit>
void first_then_apart(Units& out, Unit a, Unit b) {  // "a b "
  out += a;
  out += Unit{' '};
  out += b;
  out += Unit{' '};
}
template <typename Units, typename Unit>
void apart_then_second(Units& out, Unit a, Unit b) {  // " a b"
  out += Unit{' '};
  out += a;
  out += Unit{' '};
  out += b;
}

}  // namespace

std::string split_at_blanks(std::string_view utf8) {
  std::string words;
  words.reserve(utf8.size());
  bool blank = false;
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t begin = at;
    if (is_space(next_code_point(utf8, at))) {
      blank = true;
      continue;
    }
    if (blank && !words.empty()) words += ' ';
    blank = false;
    words.append(utf8, begin, at - begin);
  }
  return words;
}

// The rules work on bytes: bytes of non-ASCII characters are neither digits nor stops, so the patterns match as they
// would on whole characters.
std::string split_13a(std::string_view text) {
  std::string line(text);
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  if (line.find('&') != std::string::npos) {
    replace_all(line, "&quot;", "\"");
    replace_all(line, "&amp;", "&");
    replace_all(line, "&lt;", "<");
    replace_all(line, "&gt;", ">");
  }
  std::string apart = " ";
  apart.reserve(line.size() + line.size() / 4 + 2);
  for (const char c : line + " ") {
    if (stands_alone(c)) apart += ' ';
    apart += c;
    if (stands_alone(c)) apart += ' ';
  }
  const auto no_digit = [](char c) { return !is_ascii_digit(c); };
  apart = replace_pairs(apart, no_digit, is_stop, first_then_apart<std::string, char>);
  apart = replace_pairs(apart, is_stop, no_digit, apart_then_second<std::string, char>);
  apart = replace_pairs(
      apart, is_ascii_digit, [](char c) { return c == '-'; }, first_then_apart<std::string, char>);
  return split_at_blanks(apart);
}

std::string split_international(std::string_view utf8) {
  std::u32string line = to_code_points(utf8);
  const auto no_number = [](char32_t c) { return !is_number(c); };
  line = replace_pairs(line, no_number, is_punctuation, first_then_apart<std::u32string, char32_t>);
  line = replace_pairs(line, is_punctuation, no_number, apart_then_second<std::u32string, char32_t>);
  std::u32string apart;
  for (const char32_t c : line) {
    if (is_symbol(c)) apart += U' ';
    apart += c;
    if (is_symbol(c)) apart += U' ';
  }
  return split_at_blanks(to_utf8(apart));
}

std::string split_characters(std::string_view utf8) {
  std::string words;
  words.reserve(2 * utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t begin = at;
    if (is_space(next_code_point(utf8, at))) continue;
    if (!words.empty()) words += ' ';
    words.append(utf8, begin, at - begin);
  }
  return words;
}

std::string_view without_end_blanks(std::string_view utf8) {
  const std::string_view middle = strip(utf8);
  if (middle.empty()) return {};
  return utf8.substr(0, static_cast<std::size_t>(middle.data() + middle.size() - utf8.data()));
}

std::string split_compounds(std::string_view utf8) {
  struct Character {
    std::size_t begin, end;
    bool blank;
  };
  std::vector<Character> characters;
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t begin = at;
    const bool blank = is_space(next_code_point(utf8, at));
    characters.push_back({begin, at, blank});
  }
  std::string result;
  const auto append = [&](const Character& c) { result.append(utf8, c.begin, c.end - c.begin); };
  for (std::size_t i = 0; i < characters.size(); ++i) {
    append(characters[i]);
    const bool compound = i + 2 < characters.size() && !characters[i].blank && utf8[characters[i + 1].begin] == '-' &&
                          !characters[i + 2].blank;
    if (!compound) continue;
    result += " ##AT##-##AT## ";
    append(characters[i + 2]);
    i += 2;
  }
  return result;
}

}  // namespace etc::data
