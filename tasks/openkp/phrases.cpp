#include "tasks/openkp/phrases.h"

#include "data/text/unicode.h"
#include "tasks/openkp/phrase_search.h"

namespace etc::openkp {

namespace {

// The byte offset after `count` characters from byte `at`.
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

std::vector<bool> occur_in_text(const std::vector<std::string>& phrases, std::string_view lower_text) {
  std::vector<std::string> lower;
  for (const std::string& phrase : phrases) lower.push_back(data::lower_case(phrase));
  PhraseSearch search(lower);
  search.find_new(lower_text);
  const bool empty_occurs = occurs_in_text("", lower_text);
  std::vector<bool> occur;
  for (std::size_t i = 0; i < phrases.size(); ++i) {
    if (phrases[i].empty()) {
      occur.push_back(empty_occurs);
    } else if (data::to_code_points(phrases[i]).size() == data::to_code_points(lower[i]).size()) {
      occur.push_back(search.found(i));
    } else {
      occur.push_back(occurs_in_text(phrases[i], lower_text));  // lower-casing changed its length; rare
    }
  }
  return occur;
}

std::vector<std::size_t> valid_phrases(const std::vector<Phrase>& phrases, std::string_view text) {
  std::vector<std::string> texts;
  for (const Phrase& phrase : phrases) texts.push_back(phrase_text(phrase));
  const std::vector<bool> occur = occur_in_text(texts, data::lower_case(text));
  std::vector<std::size_t> valid;
  for (std::size_t i = 0; i < phrases.size(); ++i) {
    if (occur[i]) valid.push_back(i);
  }
  return valid;
}

}  // namespace etc::openkp
