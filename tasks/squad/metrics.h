// The official scores of SQuAD 1.1 and 2.0 (dense-transformer 5.6).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/json_fwd.h"

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

// Compares one prediction with one gold answer: equality of the normalised texts, and overlap of their words. If either
// has no words, f1 is 0 in version 1.1; in 2.0 it is 1 if both have none, else 0.
Score score(std::string_view prediction, std::string_view gold, Version version);

// The largest of each number over the gold answers; in version 2.0 over those whose normalised text is not empty, or over ""
// if there are none.
Score best_score(std::string_view prediction, const GoldQuestion& gold, Version version);

using PredictionMap = std::map<std::string, std::string>;
// By id, the score of "no answer" minus the score of the answer; +∞ if there is no answer to compare with.
using NullOdds = std::map<std::string, double>;

// Everything for one set of predictions: "metrics" (percent, the official names), "missing" (ids without a prediction).
//   version 1.1   exact_match, f1; a question without a prediction counts 0
//   version 2.0   exact, f1, total, and the same for questions with an answer (HasAns_…) and without (NoAns_…); a question
//                 without a prediction is left out
// Throws Error if there are no questions.
Json evaluate(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold, Version version);

// One question in the search for a threshold.
struct ThresholdCase {
  double null_odds = 0;
  double raw_score = 0;  // of its prediction, ignoring the odds
  bool has_answer = false;
  bool predicts_answer = true;  // its prediction is not ""
};
struct BestThreshold {
  double score = 0;  // percent
  double threshold = 0;
};

// The best threshold and its score: questions whose odds are above the threshold are answered by "". The search starts
// with "" for all and threshold 0, then gives questions their predictions in the order of their odds (equal odds in the
// given order); the first largest sum counts. cases: questions with a prediction; the sum is divided by their number.
// unanswerable: number of gold questions without an answer, with or without a prediction, as the official script counts
// them. If some of these have no prediction, the score is too large and can exceed 100 %.
BestThreshold best_threshold(std::vector<ThresholdCase> cases, std::int64_t unanswerable);

// Version 2.0 with odds, like the official script with an odds file: metrics also has best_exact, best_exact_thresh,
// best_f1 and best_f1_thresh; the other metrics count a prediction as "" if its odds are above `answered_up_to`.
Json evaluate_with_odds(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold, const NullOdds& odds,
                        double answered_up_to);

}  // namespace etc::squad
