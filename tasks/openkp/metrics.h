// The official OpenKP scores: precision, recall and F1 of the first 1, 3 and 5 key phrases (task-openkp 6).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc::openkp {

using Phrase = std::vector<std::string>;  // its words

inline constexpr std::array<std::int64_t, 3> kDepths = {1, 3, 5};

struct Score {
  double precision = 0, recall = 0, f1 = 0;
};

// The official scorer's form of a list of phrases: words in lower case, joined by one space, without trailing white
// space. Repeated phrases and phrases without words or with an empty first word are left out.
std::vector<std::string> normalised_phrases(const std::vector<Phrase>& phrases);

// With tp = the number of the first k candidates among the distinct references: P = tp/k (also with fewer candidates),
// R = tp/|references|, F1 = 2PR/(P+R), 0 without a hit. At least one reference.
Score score_at(std::int64_t k, const std::vector<std::string>& candidates, const std::vector<std::string>& references);

// Scores of a page at the depths, and their sums over pages.
class ScoreSum {
 public:
  void add(const std::vector<std::string>& candidates, const std::vector<std::string>& references);
  std::int64_t pages() const { return pages_; }

  // "P@1", "R@1", "F1@1", "P@3", …: macro means over the pages, each multiplied by 1 − removed_share, where removed_share is
  // the share of pages that were not added and count as 0. At least one page.
  std::map<std::string, double> means(double removed_share = 0) const;

 private:
  std::int64_t pages_ = 0;
  std::array<Score, kDepths.size()> sums_;
};

// url → phrases.
using PhraseMap = std::map<std::string, std::vector<Phrase>>;

// For a prediction file: "metrics" (the means), "pages", and "few_phrases", the number of pages with less than five
// candidates. Throws Error (`where` names the prediction file) when the urls differ, listing the first ten of each side,
// when there are no pages, or when a page has no gold key phrase.
Json evaluate(const PhraseMap& predictions, const PhraseMap& gold, const std::string& where);

}  // namespace etc::openkp
