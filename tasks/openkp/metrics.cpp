#include "tasks/openkp/metrics.h"

#include <algorithm>
#include <set>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::openkp {

namespace {

std::string without_trailing_space(const std::string& text) {
  const std::string_view stripped = data::strip(text);
  return stripped.empty() ? ""
                          : text.substr(0, static_cast<std::size_t>(stripped.data() + stripped.size() - text.data()));
}

// Up to ten urls of `a` that are not in `b`, and the number of further ones.
std::string only_in(const PhraseMap& a, const PhraseMap& b) {
  constexpr std::size_t kShown = 10;
  std::string text;
  std::size_t count = 0;
  for (const auto& [url, phrases] : a) {
    if (b.contains(url)) continue;
    if (++count <= kShown) text += (count > 1 ? ", " : "") + url;
  }
  return count <= kShown ? text : fmt::format("{} and {} more", text, count - kShown);
}

}  // namespace

std::vector<std::string> normalised_phrases(const std::vector<Phrase>& phrases) {
  std::vector<std::string> result;
  std::set<std::string> seen;
  for (const Phrase& phrase : phrases) {
    if (phrase.empty() || phrase[0].empty()) continue;
    std::string joined = data::lower_case(phrase[0]);
    for (std::size_t i = 1; i < phrase.size(); ++i) joined += " " + data::lower_case(phrase[i]);
    std::string text = without_trailing_space(joined);
    if (seen.insert(text).second) result.push_back(std::move(text));
  }
  return result;
}

Score score_at(std::int64_t k, const std::vector<std::string>& candidates, const std::vector<std::string>& references) {
  const std::set<std::string> wanted(references.begin(), references.end());
  const auto first = std::min(static_cast<std::int64_t>(candidates.size()), k);
  const auto hits = static_cast<double>(std::count_if(candidates.begin(), candidates.begin() + first,
                                                      [&](const std::string& c) { return wanted.contains(c); }));
  Score score;
  score.precision = hits / static_cast<double>(k);
  score.recall = hits / static_cast<double>(wanted.size());
  if (hits > 0) score.f1 = 2 * score.precision * score.recall / (score.precision + score.recall);
  return score;
}

void ScoreSum::add(const std::vector<std::string>& candidates, const std::vector<std::string>& references) {
  ++pages_;
  for (std::size_t d = 0; d < kDepths.size(); ++d) {
    const Score score = score_at(kDepths[d], candidates, references);
    sums_[d].precision += score.precision;
    sums_[d].recall += score.recall;
    sums_[d].f1 += score.f1;
  }
}

std::map<std::string, double> ScoreSum::means(double removed_share) const {
  std::map<std::string, double> means;
  const auto mean = [&](double sum) { return sum / static_cast<double>(pages_) * (1 - removed_share); };
  for (std::size_t d = 0; d < kDepths.size(); ++d) {
    means[fmt::format("P@{}", kDepths[d])] = mean(sums_[d].precision);
    means[fmt::format("R@{}", kDepths[d])] = mean(sums_[d].recall);
    means[fmt::format("F1@{}", kDepths[d])] = mean(sums_[d].f1);
  }
  return means;
}

Json evaluate(const PhraseMap& predictions, const PhraseMap& gold, const std::string& where) {
  if (gold.empty()) fail("eval", "the gold files have no page to compare with");
  std::vector<std::string> differences;
  if (const std::string missing = only_in(gold, predictions); !missing.empty()) {
    differences.push_back("no prediction for these gold pages: " + missing);
  }
  if (const std::string unknown = only_in(predictions, gold); !unknown.empty()) {
    differences.push_back("predictions for pages that are not in gold: " + unknown);
  }
  if (!differences.empty()) fail(where, "{}", fmt::join(differences, "; "));
  ScoreSum sum;
  std::int64_t few = 0;
  for (const auto& [url, phrases] : gold) {
    const std::vector<std::string> references = normalised_phrases(phrases);
    const std::vector<std::string> candidates = normalised_phrases(predictions.at(url));
    if (references.empty()) fail("eval", "gold page {}: no key phrase to compare with", url);
    if (std::ssize(candidates) < kDepths.back()) ++few;
    sum.add(candidates, references);
  }
  return {{"metrics", sum.means()}, {"pages", sum.pages()}, {"few_phrases", few}};
}

}  // namespace etc::openkp
