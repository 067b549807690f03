// Searching many phrases at once against searching each phrase alone.
#include "tasks/openkp/phrase_search.h"

#include <algorithm>
#include <random>

#include "tasks/openkp/phrases.h"
#include "tests/support/catch.h"

using namespace etc::openkp;

namespace {

// The index of the word of `text` at which the phrase first occurs, found by trying one position after the other; -1 if
// it does not occur.
std::int64_t word_of(const std::string& phrase, const std::string& text) {
  for (std::size_t at = 0; (at = text.find(phrase, at)) != std::string::npos; ++at) {
    const std::size_t end = at + phrase.size();
    if ((at == 0 || text[at - 1] == ' ') && (end == text.size() || text[end] == ' ')) {
      return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), ' ');
    }
  }
  return -1;
}

// Words of few letters, some of them empty.
std::string random_text(std::mt19937& random, std::size_t most_words) {
  const char* const words[] = {"a", "b", "ab", "ba", "", "A", "\u0130", "i\u0307", "c"};
  std::string text;
  for (std::size_t i = random() % (most_words + 1); i > 0; --i) {
    text += words[random() % std::size(words)];
    if (i > 1) text += ' ';
  }
  return text;
}

}  // namespace

TEST_CASE("phrases that are searched together are found where each of them is", "[tasks][openkp]") {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<std::string> phrases;
    for (std::size_t i = random() % 40; i > 0; --i) phrases.push_back(random_text(random, 1 + i % 6));
    PhraseSearch search(phrases);
    std::vector<bool> seen(phrases.size(), false);
    for (int element = 0; element < 4; ++element) {
      const std::string text = random_text(random, 30);
      std::vector<std::int64_t> expected(phrases.size(), -1), found(phrases.size(), -1);
      for (std::size_t i = 0; i < phrases.size(); ++i) {
        if (!seen[i]) expected[i] = word_of(phrases[i], text);
        seen[i] = seen[i] || expected[i] >= 0;
      }
      std::size_t last = 0;
      for (const auto& [phrase, word] : search.find_new(text)) {
        CHECK(phrase >= last);
        last = phrase;
        found[phrase] = static_cast<std::int64_t>(word);
      }
      CHECK(found == expected);
    }
    for (std::size_t i = 0; i < phrases.size(); ++i) CHECK(search.found(i) == seen[i]);
  }
}

TEST_CASE("whether many phrases occur in a text is what is said of each alone", "[tasks][openkp]") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<std::string> phrases;
    for (std::size_t i = random() % 20; i > 0; --i) phrases.push_back(random_text(random, 4));
    const std::string text = random_text(random, 20);
    const std::vector<bool> together = occur_in_text(phrases, text);
    for (std::size_t i = 0; i < phrases.size(); ++i) CHECK(together[i] == occurs_in_text(phrases[i], text));
  }
}

TEST_CASE("thousands of phrases that are ends of each other are found", "[tasks][openkp]") {
  std::string text;
  std::vector<std::string> phrases;
  for (int i = 0; i < 2000; ++i) {
    text += "a ";
    phrases.push_back(text.substr(0, text.size() - 1));
  }
  PhraseSearch search(phrases);
  const auto found = search.find_new(text + "b");
  CHECK(found.size() == phrases.size());
  CHECK(std::all_of(found.begin(), found.end(), [](const auto& f) { return f.word == 0; }));
  CHECK(search.find_new(text).empty());
}
