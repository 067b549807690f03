#include "tasks/nq/metrics.h"

#include <algorithm>
#include <array>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::nq {

namespace {

constexpr int kAnnotatorsNeeded = 2;
constexpr std::array kPrecisionTargets = {0.5, 0.75, 0.9};

double ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

ThresholdPoint point(double threshold, double correct, double predicted, double gold) {
  ThresholdPoint p;
  p.threshold = threshold;
  p.precision = ratio(correct, predicted);
  p.recall = ratio(correct, gold);
  p.f1 = ratio(2 * p.precision * p.recall, p.precision + p.recall);
  return p;
}

bool is_null(const std::vector<Span>& spans) {
  return std::all_of(spans.begin(), spans.end(), [](const Span& s) { return s.null(); });
}

bool contained(const std::vector<Span>& spans, const std::vector<Span>& others) {
  return std::all_of(spans.begin(), spans.end(), [&](const Span& s) {
    return s.null() || std::any_of(others.begin(), others.end(), [&](const Span& o) { return same_span(s, o); });
  });
}

bool has_short_answer(const Annotation& annotation) {
  return annotation.yes_no != YesNo::none || !is_null(annotation.short_answers);
}

Json table_json(const ThresholdTable& table) {
  Json json = Json::array();
  for (const ThresholdPoint& p : table.points) {
    json.push_back({{"threshold", p.threshold}, {"precision", p.precision}, {"recall", p.recall}, {"f1", p.f1}});
  }
  return json;
}

void put_metrics(Json& metrics, const std::string& kind, const ThresholdTable& table) {
  metrics[kind + "-best-threshold"] = table.best.threshold;
  metrics[kind + "-best-threshold-f1"] = table.best.f1;
  metrics[kind + "-best-threshold-precision"] = table.best.precision;
  metrics[kind + "-best-threshold-recall"] = table.best.recall;
  for (const double target : kPrecisionTargets) {
    const ThresholdPoint p = recall_at_precision(table, target);
    metrics[fmt::format("{}-recall-at-precision>={}", kind, target)] = p.recall;
    metrics[fmt::format("{}-precision-at-precision>={}", kind, target)] = p.precision;
  }
}

}  // namespace

bool same_span(const Span& a, const Span& b) {
  if (a.null() || b.null()) return false;
  const auto given = [](std::int64_t start, std::int64_t end) { return start >= 0 && end >= 0; };
  const bool bytes = given(a.start_byte, a.end_byte) && given(b.start_byte, b.end_byte) &&
                     a.start_byte == b.start_byte && a.end_byte == b.end_byte;
  const bool tokens = given(a.start_token, a.end_token) && given(b.start_token, b.end_token) &&
                      a.start_token == b.start_token && a.end_token == b.end_token;
  return bytes || tokens;
}

bool same_spans(const std::vector<Span>& a, const std::vector<Span>& b) {
  return contained(a, b) && contained(b, a);
}

Outcome long_outcome(const GoldDocument& gold, const Prediction& prediction) {
  Outcome outcome;
  outcome.score = prediction.long_score;
  outcome.has_prediction = !prediction.long_answer.null();
  outcome.has_gold = std::count_if(gold.annotations.begin(), gold.annotations.end(),
                                   [](const Annotation& a) { return !a.long_answer.null(); }) >= kAnnotatorsNeeded;
  outcome.correct = outcome.has_gold && outcome.has_prediction &&
                    std::any_of(gold.annotations.begin(), gold.annotations.end(),
                                [&](const Annotation& a) { return same_span(a.long_answer, prediction.long_answer); });
  return outcome;
}

Outcome short_outcome(const GoldDocument& gold, const Prediction& prediction) {
  Outcome outcome;
  outcome.score = prediction.short_score;
  outcome.has_prediction = prediction.yes_no != YesNo::none || !is_null(prediction.short_answers);
  outcome.has_gold =
      std::count_if(gold.annotations.begin(), gold.annotations.end(), has_short_answer) >= kAnnotatorsNeeded;
  outcome.correct = outcome.has_gold && outcome.has_prediction &&
                    std::any_of(gold.annotations.begin(), gold.annotations.end(), [&](const Annotation& a) {
                      return prediction.yes_no != YesNo::none ? prediction.yes_no == a.yes_no
                                                              : same_spans(prediction.short_answers, a.short_answers);
                    });
  return outcome;
}

ThresholdTable threshold_table(std::vector<Outcome> outcomes) {
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const Outcome& a, const Outcome& b) { return a.score > b.score; });
  double gold = 0, predicted = 0, correct = 0;
  for (const Outcome& outcome : outcomes) gold += outcome.has_gold ? 1 : 0;
  ThresholdTable table;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    predicted += outcomes[i].has_prediction ? 1 : 0;
    correct += outcomes[i].correct ? 1 : 0;
    // A threshold keeps or drops all predictions with the same score together.
    if (i + 1 < outcomes.size() && outcomes[i + 1].score == outcomes[i].score) continue;
    table.points.push_back(point(outcomes[i].score, correct, predicted, gold));
    if (table.points.back().f1 > table.best.f1) table.best = table.points.back();
  }
  return table;
}

ThresholdPoint recall_at_precision(const ThresholdTable& table, double target) {
  ThresholdPoint best;
  for (const ThresholdPoint& p : table.points) {
    if (p.precision >= target && p.recall > best.recall) best = p;
  }
  return best;
}

ThresholdPoint ignoring_scores(const std::vector<Outcome>& outcomes) {
  double gold = 0, predicted = 0, correct = 0;
  for (const Outcome& outcome : outcomes) {
    gold += outcome.has_gold ? 1 : 0;
    predicted += outcome.has_prediction ? 1 : 0;
    correct += outcome.correct ? 1 : 0;
  }
  return point(0, correct, predicted, gold);
}

Json evaluate(const std::map<std::int64_t, Prediction>& predictions, const std::vector<GoldDocument>& gold) {
  if (gold.empty()) fail("eval", "the gold files have no annotated document to compare with");
  std::vector<Outcome> long_outcomes, short_outcomes;
  for (const GoldDocument& document : gold) {
    const Prediction& prediction = predictions.at(document.example_id);
    long_outcomes.push_back(long_outcome(document, prediction));
    short_outcomes.push_back(short_outcome(document, prediction));
  }
  Json ignoring = Json::object(), metrics = Json::object();
  const auto put_ignoring = [&](const std::string& kind, const std::vector<Outcome>& outcomes) {
    const ThresholdPoint all = ignoring_scores(outcomes);
    ignoring[kind + "-answer-f1"] = all.f1;
    ignoring[kind + "-answer-precision"] = all.precision;
    ignoring[kind + "-answer-recall"] = all.recall;
    ignoring[kind + "-answer-n"] = outcomes.size();
  };
  put_ignoring("long", long_outcomes);
  put_ignoring("short", short_outcomes);
  const ThresholdTable long_table = threshold_table(std::move(long_outcomes));
  const ThresholdTable short_table = threshold_table(std::move(short_outcomes));
  put_metrics(metrics, "long", long_table);
  put_metrics(metrics, "short", short_table);
  return {{"metrics", metrics},
          {"average_f1", (long_table.best.f1 + short_table.best.f1) / 2},
          {"ignoring_scores", ignoring},
          {"documents", gold.size()},
          {"thresholds", {{"long", table_json(long_table)}, {"short", table_json(short_table)}}}};
}

}  // namespace etc::nq
