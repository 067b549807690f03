#include "tasks/openkp/decode.h"

#include <algorithm>
#include <cmath>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/openkp/page.h"
#include "tasks/text/json_field.h"
#include "tasks/text/top_scores.h"

namespace etc::openkp {

std::vector<ScoredPhrase> decode(const PhraseClasses& classes, std::string_view text, const DecodeOptions& options) {
  const std::vector<std::string_view> words = words_of(text);
  std::vector<ScoredPhrase> phrases;
  // Classes are in the order that decides between equal scores: by length, then by place.
  for (const std::int64_t rank : text::largest(classes.scores, options.max_positions)) {
    if (std::ssize(phrases) == options.max_phrases) break;
    const std::int64_t entry = classes.entries[static_cast<std::size_t>(rank)];
    const std::int64_t first = std::min(entry % classes.positions, std::ssize(words));
    const std::int64_t end = std::min(first + entry / classes.positions + 1, std::ssize(words));
    std::string phrase =
        data::lower_case(fmt::format("{}", fmt::join(words.begin() + first, words.begin() + end, " ")));
    const auto same = [&](const ScoredPhrase& p) { return p.text == phrase; };
    if (phrase.empty() || std::any_of(phrases.begin(), phrases.end(), same)) continue;
    phrases.push_back({std::move(phrase), classes.scores[static_cast<std::size_t>(rank)], first, end - first});
  }
  return phrases;
}

std::vector<double> probabilities(const std::vector<ScoredPhrase>& phrases, const PhraseClasses& classes) {
  const float largest = *std::max_element(classes.scores.begin(), classes.scores.end());
  double sum = 0;
  for (const float z : classes.scores) sum += std::exp(static_cast<double>(z - largest));
  std::vector<double> shares;
  for (const ScoredPhrase& phrase : phrases)
    shares.push_back(std::exp(static_cast<double>(phrase.score - largest)) / sum);
  return shares;
}

void PredictionFile::add(const std::string& url, const std::vector<ScoredPhrase>& phrases) {
  if (!urls_.insert(url).second) fail("predictions", "url {} occurs twice", url);
  Json texts = Json::array();
  for (const ScoredPhrase& phrase : phrases) texts.push_back(Json::array({phrase.text}));
  output_.write("{\"url\": " + text::one_line(url) + ", \"KeyPhrases\": " + text::one_line(texts) + "}\n");
}

void PredictionFile::finish() {
  output_.finish();
}

}  // namespace etc::openkp
