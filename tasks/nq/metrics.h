// The official Natural Questions scores: long and short answers at the best threshold (task-nq 6).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc::nq {

// Document tokens [start_token, end_token) and bytes of the HTML [start_byte, end_byte); a negative pair means not given.
struct Span {
  std::int64_t start_token = -1, end_token = -1;
  std::int64_t start_byte = -1, end_byte = -1;
  bool null() const { return start_token < 0 && end_token < 0 && start_byte < 0 && end_byte < 0; }
};

// Whether two non-null spans have the same bytes, or the same tokens; a pair that only one of them gives is not compared.
bool same_span(const Span& a, const Span& b);

// Whether every non-null span of either side is the same as one of the other side.
bool same_spans(const std::vector<Span>& a, const std::vector<Span>& b);

enum class YesNo { none, yes, no };

struct Annotation {
  Span long_answer;
  std::vector<Span> short_answers;
  YesNo yes_no = YesNo::none;
};

struct GoldDocument {
  std::int64_t example_id = 0;
  std::vector<Annotation> annotations;  // [at least 1]
};

struct Prediction {
  std::int64_t example_id = 0;
  Span long_answer;
  double long_score = 0;
  std::vector<Span> short_answers;
  double short_score = 0;
  YesNo yes_no = YesNo::none;
};

// The inputs of the scores for one document. A gold answer exists when at least two annotators gave one.
struct Outcome {
  bool has_gold = false, has_prediction = false, correct = false;
  double score = 0;
};
Outcome long_outcome(const GoldDocument& gold, const Prediction& prediction);
Outcome short_outcome(const GoldDocument& gold, const Prediction& prediction);

// Precision, recall and F1 of the predictions whose score reaches the threshold.
struct ThresholdPoint {
  double threshold = 0, precision = 0, recall = 0, f1 = 0;
};

struct ThresholdTable {
  std::vector<ThresholdPoint> points;  // one per distinct score, descending
  ThresholdPoint best;                 // the first with the largest F1; all 0 when no F1 is above 0
};

// Scores must be finite. Cost: O(n log n).
ThresholdTable threshold_table(std::vector<Outcome> outcomes);

// The point with the largest recall among those with precision >= target, the first of equals; all 0 if there is none.
ThresholdPoint recall_at_precision(const ThresholdTable& table, double target);

// Scores with every prediction counted, whatever its score; the threshold is 0.
ThresholdPoint ignoring_scores(const std::vector<Outcome>& outcomes);

// Everything for one prediction file:
//   "metrics"          the keys of the official scorer ("long-best-threshold-f1", …)
//   "average_f1"       mean of the two best F1
//   "ignoring_scores"  "long-answer-f1", -precision, -recall, -n and the same for short
//   "thresholds"       {"long", "short"}: the tables, an object per point
// predictions: one per gold document, under its id. Throws Error without documents.
Json evaluate(const std::map<std::int64_t, Prediction>& predictions, const std::vector<GoldDocument>& gold);

}  // namespace etc::nq
