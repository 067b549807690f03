#include "tasks/text/answer_text.h"

#include <map>

#include "data/text/unicode.h"

namespace etc::text {

namespace {

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_article(std::string_view word) {
  return word == "a" || word == "an" || word == "the";
}

// Replaces every article by a space.
std::string without_articles(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    std::size_t next = at;
    while (at < text.size() && data::is_word(data::next_code_point(text, next))) at = next;
    const std::string_view word = std::string_view(text).substr(begin, at - begin);
    result += is_article(word) ? " " : word;
    if (at < text.size()) {  // the character after the word
      result.append(text, at, next - at);
      at = next;
    }
  }
  return result;
}

}  // namespace

std::vector<std::string_view> white_space_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t next = at;
    const bool ends = at == text.size() || data::is_space(data::next_code_point(text, next));
    if (ends && at > begin) words.push_back(text.substr(begin, at - begin));
    if (at == text.size()) break;
    if (ends) begin = next;
    at = next;
  }
  return words;
}

std::string normalised_answer(std::string_view utf8) {
  std::string text = data::lower_case(utf8);
  std::erase_if(text, is_ascii_punctuation);
  text = without_articles(text);
  std::string result;
  for (const std::string_view word : white_space_words(text)) {
    if (!result.empty()) result += ' ';
    result += word;
  }
  return result;
}

WordOverlap word_overlap(std::string_view prediction, std::string_view gold) {
  const std::vector<std::string_view> predicted = white_space_words(prediction), wanted = white_space_words(gold);
  std::map<std::string_view, int> left;
  for (const std::string_view word : wanted) ++left[word];
  int shared = 0;
  for (const std::string_view word : predicted) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++shared;
  }
  if (shared == 0) return {};
  WordOverlap overlap;
  overlap.precision = 1.0 * shared / static_cast<double>(predicted.size());
  overlap.recall = 1.0 * shared / static_cast<double>(wanted.size());
  overlap.f1 = 2 * overlap.precision * overlap.recall / (overlap.precision + overlap.recall);
  return overlap;
}

}  // namespace etc::text
