// The official scores of SQuAD 1.1 and 2.0 (dense-transformer 5.6).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/json.h"

namespace etc::squad {

enum class Version { v1_1, v2_0 };

struct GoldQuestion {
  std::string id;
  std::vector<std::string> answers;
  bool has_answer() const { return !answers.empty(); }
};

struct Score {
  double exact = 0, f1 = 0;  // 0 … 1
};

// Of one prediction and one gold answer: equality of the normalised texts, and overlap of their words. Where either has
// none, f1 is 0 in version 1.1, and whether both have none in 2.0.
Score score(std::string_view prediction, std::string_view gold, Version version);

// The largest of each number over the gold answers; version 2.0: over those with a normalised text, or "" where there
// are none.
Score best_score(std::string_view prediction, const GoldQuestion& gold, Version version);

using PredictionMap = std::map<std::string, std::string>;
// How much more "no answer" scores than the answer; +∞ where there is no answer to compare with.
using NullOdds = std::map<std::string, double>;

// Everything for one set of predictions: "metrics" (percent, the official names), "missing" (ids without a prediction).
//   version 1.1   exact_match, f1; a question without a prediction counts 0
//   version 2.0   exact, f1, total and the same of questions that have an answer (HasAns_…) or none (NoAns_…); a
//                 question without a prediction is left out
// Throws Error without questions.
Json evaluate(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold, Version version);

// One question as the search for a threshold sees it.
struct ThresholdCase {
  double null_odds = 0;
  double raw_score = 0;  // of its prediction, whatever the odds
  bool has_answer = false;
  bool predicts_answer = true;  // its prediction is not ""
};
struct BestThreshold {
  double score = 0;  // percent
  double threshold = 0;
};

// The score of the best threshold: what is above it is answered by "". From "" for all, with threshold 0, questions are
// given their prediction in the order of their odds, equal ones as they come; the first largest sum counts. cases:
// questions with a prediction, by whose number the sum is divided; unanswerable: gold questions without an answer, with
// a prediction or not, as the official script counts them. Without predictions for some of them it exceeds what
// the predictions deserve, even 100 %.
BestThreshold best_threshold(std::vector<ThresholdCase> cases, std::int64_t unanswerable);

// Version 2.0 with odds, as the official script with a file of them: metrics also has best_exact, best_exact_thresh,
// best_f1 and best_f1_thresh; where the odds are above `answered_up_to`, the others count the prediction as "".
Json evaluate_with_odds(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold, const NullOdds& odds,
                        double answered_up_to);

}  // namespace etc::squad
