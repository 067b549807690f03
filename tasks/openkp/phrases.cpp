#include "tasks/openkp/phrases.h"

#include "data/text/unicode.h"

namespace etc::openkp {

namespace {

// Byte behind `count` characters from byte `at` on.
std::size_t advance(std::string_view text, std::size_t at, std::size_t count) {
  while (count-- > 0 && at < text.size()) data::next_code_point(text, at);
  return at;
}

}  // namespace

std::string phrase_text(const Phrase& phrase) {
  std::string text;
  for (const std::string& word : phrase) {
    const std::string_view stripped = data::strip(word);
    if (stripped.empty()) continue;
    if (!text.empty()) text += ' ';
    text += stripped;
  }
  return text;
}

std::size_t find_words(std::string_view key, std::string_view text) {
  for (std::size_t at = 0; (at = text.find(key, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + key.size();
    if ((at == 0 || text[at - 1] == ' ') && (end == text.size() || text[end] == ' ')) return at;
  }
  return std::string_view::npos;
}

bool occurs_in_text(std::string_view phrase, std::string_view lower_text) {
  if (phrase.empty()) {
    return lower_text.empty() || lower_text.ends_with(' ') || lower_text.find("  ") != std::string_view::npos;
  }
  const std::string lower = data::lower_case(phrase);
  // The reference measures the phrase before lower-casing it.
  const std::size_t length = data::to_code_points(phrase).size();
  for (std::size_t at = 0; (at = lower_text.find(lower, at)) != std::string_view::npos; ++at) {
    if (at > 0 && lower_text[at - 1] != ' ') continue;
    const std::size_t end = advance(lower_text, at, length);
    if (end == lower_text.size() || lower_text[end] == ' ') return true;
  }
  return false;
}

std::vector<std::size_t> valid_phrases(const std::vector<Phrase>& phrases, std::string_view text) {
  const std::string lower_text = data::lower_case(text);
  std::vector<std::size_t> valid;
  for (std::size_t i = 0; i < phrases.size(); ++i) {
    if (occurs_in_text(phrase_text(phrases[i]), lower_text)) valid.push_back(i);
  }
  return valid;
}

}  // namespace etc::openkp
