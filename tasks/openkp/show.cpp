#include "tasks/openkp/show.h"

#include <fmt/format.h>

#include <algorithm>

#include "tasks/feed/features.h"
#include "tasks/openkp/page.h"

namespace etc::openkp {

namespace {

constexpr std::int64_t kContext = 8;  // words before and behind a phrase

// The phrase in brackets with the words around it.
std::string passage(const std::vector<std::string_view>& words, std::int64_t first, std::int64_t count) {
  const std::int64_t begin = std::max<std::int64_t>(0, first - kContext);
  const std::int64_t end = std::min(std::ssize(words), first + count + kContext);
  std::string text = begin > 0 ? "…" : "";
  for (std::int64_t i = begin; i < end; ++i) {
    text += text.empty() ? "" : " ";
    text += i == first ? "[[" : "";
    text += words[static_cast<std::size_t>(i)];
    text += i == first + count - 1 ? "]]" : "";
  }
  return text + (end < std::ssize(words) ? " …" : "");
}

}  // namespace

std::string shown_prediction(const data::Example& example, const PhraseClasses& classes,
                             const std::vector<ScoredPhrase>& phrases) {
  const std::string& text = feed::text(example, "text");
  const feed::Texts& gold = feed::texts(example, "key_phrases");
  const std::vector<std::string_view> words = words_of(text);
  const std::vector<double> shares = probabilities(phrases, classes);
  std::string shown = feed::text(example, "id") + "\n";
  std::vector<std::string> found;
  for (std::size_t i = 0; i < phrases.size(); ++i) {
    const ScoredPhrase& phrase = phrases[i];
    const bool right = std::find(gold.begin(), gold.end(), phrase.text) != gold.end();
    if (right) found.push_back(phrase.text);
    const char* verdict = gold.empty() ? "" : right ? "  <- a key phrase" : "";
    shown += fmt::format("  {:6.2f} %  {}{}\n", 100 * shares[i], phrase.text, verdict);
    shown += fmt::format("            {}\n", passage(words, phrase.first_word, phrase.words));
  }
  for (const std::string& phrase : gold) {
    if (std::find(found.begin(), found.end(), phrase) == found.end()) {
      shown += fmt::format("  not predicted: {}\n", phrase);
    }
  }
  return shown;
}

}  // namespace etc::openkp
