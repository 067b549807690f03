#include "tasks/openkp/decode.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/openkp/page.h"
#include "tasks/text/json_field.h"
#include "tasks/text/top_scores.h"

namespace etc::openkp {

namespace {

// Words first … first+count−1, as far as they exist.
std::string phrase_at(const std::vector<std::string_view>& words, std::int64_t first, std::int64_t count) {
  const std::int64_t size = std::ssize(words);
  const auto begin = words.begin() + std::min(first, size), end = words.begin() + std::min(first + count, size);
  return data::lower_case(fmt::format("{}", fmt::join(begin, end, " ")));
}

}  // namespace

std::vector<ScoredPhrase> decode(std::span<const float> logits, std::int64_t positions, std::int64_t counted_words,
                                 std::string_view text, const DecodeOptions& options) {
  // The counted entries in the order that decides between equal scores: by length, then by place.
  std::vector<float> scores;
  std::vector<std::int64_t> entries;
  for (std::int64_t i = 0; i < std::ssize(logits); ++i) {
    if (i % positions + i / positions + 1 > counted_words) continue;
    scores.push_back(logits[static_cast<std::size_t>(i)]);
    entries.push_back(i);
  }
  const std::vector<std::string_view> words = words_of(text);
  std::vector<ScoredPhrase> phrases;
  for (const std::int64_t rank : text::largest(scores, options.max_positions)) {
    if (std::ssize(phrases) == options.max_phrases) break;
    const std::int64_t entry = entries[static_cast<std::size_t>(rank)];
    std::string phrase = phrase_at(words, entry % positions, entry / positions + 1);
    const auto same = [&](const ScoredPhrase& p) { return p.text == phrase; };
    if (phrase.empty() || std::any_of(phrases.begin(), phrases.end(), same)) continue;
    phrases.push_back({std::move(phrase), scores[static_cast<std::size_t>(rank)]});
  }
  return phrases;
}

PredictionFile::PredictionFile(const std::filesystem::path& target, bool with_scores)
    : output_(target), with_scores_(with_scores) {}

void PredictionFile::add(const std::string& url, const std::vector<ScoredPhrase>& phrases) {
  if (!urls_.insert(url).second) fail("predictions", "url {} occurs twice", url);
  Json texts = Json::array(), scores = Json::array();
  for (const ScoredPhrase& phrase : phrases) {
    texts.push_back(Json::array({phrase.text}));
    scores.push_back(phrase.score);
  }
  std::string line = "{\"url\": " + text::one_line(url) + ", \"KeyPhrases\": " + text::one_line(texts);
  if (with_scores_) line += ", \"Scores\": " + text::one_line(scores);
  output_.write(line + "}\n");
}

void PredictionFile::finish() {
  output_.finish();
}

}  // namespace etc::openkp
