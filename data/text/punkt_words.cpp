#include "data/text/punkt_words.h"

#include "data/text/unicode.h"

namespace etc::data::punkt {

namespace {

constexpr std::string_view kBarriers = "?!)\";}]*:@'({[";
constexpr std::string_view kNoWordStart = "(\"`{[:;&#*@)}]-,";

bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

std::size_t run_of(char c, std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of(c, at);
  return (end == std::string_view::npos ? text.size() : end) - at;
}

// Group (i): bytes of a run of two or more hyphens or periods or of a spaced ellipsis at byte `at`; 0 when none.
std::size_t multi_character_length(std::string_view text, std::size_t at) {
  if (text[at] != '-' && text[at] != '.') return 0;
  if (const std::size_t run = run_of(text[at], text, at); run >= 2) return run;
  if (text[at] == '-') return 0;
  // Spaced ellipsis: two or more times "period, one white space", then a period. `end` is one past the last period that
  // is followed by white space and another period.
  std::size_t periods = 1;
  std::size_t end = at + 1;
  while (end < text.size()) {
    const std::size_t space = space_length(text, end);
    if (space == 0 || end + space >= text.size() || text[end + space] != '.') break;
    end += space + 1;
    ++periods;
  }
  return periods >= 3 ? end - at : 0;
}

// Whether a word ends before byte `at`, apart from the comma: white space, the end, a barrier or group (i).
bool is_plain_word_end(std::string_view line, std::size_t at) {
  return at >= line.size() || space_length(line, at) > 0 || is_barrier(line[at]) ||
         multi_character_length(line, at) > 0;
}

void split_line(std::string_view line, std::vector<std::string_view>& words) {
  for (std::size_t at = 0; at < line.size();) {
    if (const std::size_t space = space_length(line, at); space > 0) {
      at += space;
      continue;
    }
    std::size_t length = multi_character_length(line, at);
    if (length == 0) {
      length = character_length(line, at);
      if (!is_one_of(line[at], kNoWordStart)) {
        while (!is_plain_word_end(line, at + length) &&
               !(line[at + length] == ',' && is_plain_word_end(line, at + length + 1))) {
          length += character_length(line, at + length);
        }
      }
    }
    words.push_back(line.substr(at, length));
    at += length;
  }
}

}  // namespace

bool is_end(char c) {
  return c == '.' || c == '?' || c == '!';
}

bool is_closer(char c) {
  return c == '"' || c == '\'' || c == ')' || c == ']' || c == '}';
}

bool is_barrier(char c) {
  return is_one_of(c, kBarriers);
}

std::size_t space_length(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return first <= ' ' && is_space(first) ? 1 : 0;
  const std::size_t begin = at;
  return is_space(next_code_point(text, at)) ? at - begin : 0;
}

std::size_t character_length(std::string_view text, std::size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return 1;
  const std::size_t begin = at;
  next_code_point(text, at);
  return at - begin;
}

std::size_t space_run(std::string_view text, std::size_t at) {
  const std::size_t begin = at;
  while (at < text.size()) {
    const std::size_t space = space_length(text, at);
    if (space == 0) break;
    at += space;
  }
  return at - begin;
}

std::size_t word_run(std::string_view text, std::size_t at) {
  const std::size_t begin = at;
  while (at < text.size() && space_length(text, at) == 0) at += character_length(text, at);
  return at - begin;
}

void split_words(std::string_view context, std::vector<std::string_view>& words) {
  for (std::size_t begin = 0; begin <= context.size();) {
    const std::size_t feed = context.find('\n', begin);
    const std::size_t end = feed == std::string_view::npos ? context.size() : feed;
    split_line(context.substr(begin, end - begin), words);
    begin = end + 1;
  }
}

std::string type_of(std::string_view word) {
  return is_number(word) ? std::string(kNumberType) : lower_case(word);
}

std::string without_period(std::string type) {
  if (type.size() > 1 && type.back() == '.') type.pop_back();
  return type;
}

bool is_initial(std::string_view word) {
  std::size_t at = 0;
  const char32_t c = next_code_point(word, at);
  return at + 1 == word.size() && word[at] == '.' && is_word(c) && !is_decimal(c);
}

char32_t first_character(std::string_view word) {
  std::size_t at = 0;
  return next_code_point(word, at);
}

Mark first_pass(std::string_view word, const StringSet& abbreviations) {
  if (word.size() == 1 && is_end(word[0])) return Mark::sentence_end;
  if (!word.ends_with('.')) return Mark::none;
  if (word.find_first_not_of('.') == std::string_view::npos) return Mark::ellipsis;
  if (word.ends_with("..")) return Mark::none;
  const std::string lower = lower_case(word.substr(0, word.size() - 1));
  const std::string_view known = lower;
  const bool found = abbreviations.contains(known) || abbreviations.contains(known.substr(known.find_last_of('-') + 1));
  return found ? Mark::abbreviation : Mark::sentence_end;
}

bool is_number(std::string_view word) {
  std::size_t at = 0;
  if (at < word.size() && word[at] == '-') ++at;
  if (at < word.size() && (word[at] == '.' || word[at] == ',')) ++at;
  if (at >= word.size() || !is_decimal(next_code_point(word, at))) return false;
  while (at < word.size()) {
    const char32_t c = next_code_point(word, at);
    if (c != ',' && c != '.' && c != '-' && !is_decimal(c)) return false;
  }
  return true;
}

}  // namespace etc::data::punkt
