#include "tasks/squad/metrics.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/text/answer_text.h"

namespace etc::squad {

namespace {

// Sums over some of the questions.
struct Sum {
  Score sum;
  std::int64_t total = 0;

  void add(const Score& score) {
    sum.exact += score.exact;
    sum.f1 += score.f1;
    ++total;
  }
  void write(Json& metrics, const std::string& prefix) const {
    const auto n = static_cast<double>(total);
    metrics[prefix + "exact"] = 100 * sum.exact / n;
    metrics[prefix + "f1"] = 100 * sum.f1 / n;
    metrics[prefix + "total"] = total;
  }
};

// The data for the thresholds, for each question that has a prediction.
struct Outcome {
  const GoldQuestion* gold;
  const std::string* prediction;
  Score score;
};

struct Outcomes {
  std::vector<Outcome> list;
  Json missing = Json::array();
};

Outcomes outcomes_of(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold, Version version) {
  if (gold.empty()) fail("eval", "the gold file has no question to compare with");
  Outcomes outcomes;
  for (const GoldQuestion& question : gold) {
    const auto found = predictions.find(question.id);
    if (found == predictions.end()) {
      outcomes.missing.push_back(question.id);
    } else {
      outcomes.list.push_back({&question, &found->second, best_score(found->second, question, version)});
    }
  }
  return outcomes;
}

Json version_2_metrics(const std::vector<Outcome>& outcomes) {
  Sum all, has_answer, no_answer;
  for (const Outcome& outcome : outcomes) {
    all.add(outcome.score);
    (outcome.gold->has_answer() ? has_answer : no_answer).add(outcome.score);
  }
  Json metrics = Json::object();
  all.write(metrics, "");
  if (has_answer.total > 0) has_answer.write(metrics, "HasAns_");
  if (no_answer.total > 0) no_answer.write(metrics, "NoAns_");
  return metrics;
}

void require_predictions(const std::vector<Outcome>& outcomes) {
  if (outcomes.empty()) fail("eval", "no question of the gold file has a prediction");
}

}  // namespace

Score score(std::string_view prediction, std::string_view gold, Version version) {
  const std::string ours = text::normalised_answer(prediction), theirs = text::normalised_answer(gold);
  Score score;
  score.exact = ours == theirs ? 1 : 0;
  const bool empty = ours.empty() || theirs.empty();
  score.f1 = empty && version == Version::v2_0 ? score.exact : text::word_overlap(ours, theirs).f1;
  return score;
}

Score best_score(std::string_view prediction, const GoldQuestion& gold, Version version) {
  std::vector<std::string_view> answers;
  for (const std::string& answer : gold.answers) {
    if (version == Version::v1_1 || !text::normalised_answer(answer).empty()) answers.push_back(answer);
  }
  if (answers.empty() && version == Version::v2_0) answers.push_back("");
  Score best;
  for (const std::string_view answer : answers) {
    const Score one = score(prediction, answer, version);
    best = {std::max(best.exact, one.exact), std::max(best.f1, one.f1)};
  }
  return best;
}

Json evaluate(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold, Version version) {
  const Outcomes outcomes = outcomes_of(predictions, gold, version);
  Json result = {{"metrics", Json::object()}, {"missing", outcomes.missing}};
  if (version == Version::v2_0) {
    require_predictions(outcomes.list);
    result["metrics"] = version_2_metrics(outcomes.list);
    return result;
  }
  Score sum;
  for (const Outcome& outcome : outcomes.list) {
    sum.exact += outcome.score.exact;
    sum.f1 += outcome.score.f1;
  }
  const auto n = static_cast<double>(gold.size());
  result["metrics"] = {{"exact_match", 100 * sum.exact / n}, {"f1", 100 * sum.f1 / n}};
  return result;
}

BestThreshold best_threshold(std::vector<ThresholdCase> cases, std::int64_t unanswerable) {
  std::stable_sort(cases.begin(), cases.end(),
                   [](const ThresholdCase& a, const ThresholdCase& b) { return a.null_odds < b.null_odds; });
  auto current = static_cast<double>(unanswerable);
  BestThreshold best{current, 0};
  for (const ThresholdCase& one : cases) {
    current += one.has_answer ? one.raw_score : one.predicts_answer ? -1 : 0;
    if (current > best.score) best = {current, one.null_odds};
  }
  if (!cases.empty()) best.score *= 100 / static_cast<double>(cases.size());
  return best;
}

Json evaluate_with_odds(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold, const NullOdds& odds,
                        double answered_up_to) {
  Outcomes outcomes = outcomes_of(predictions, gold, Version::v2_0);
  require_predictions(outcomes.list);
  std::vector<ThresholdCase> exact, f1;
  for (Outcome& outcome : outcomes.list) {
    const auto found = odds.find(outcome.gold->id);
    if (found == odds.end()) fail("eval", "question {} has a prediction and no null odds", outcome.gold->id);
    const bool has_answer = outcome.gold->has_answer(), predicts = !outcome.prediction->empty();
    exact.push_back({found->second, outcome.score.exact, has_answer, predicts});
    f1.push_back({found->second, outcome.score.f1, has_answer, predicts});
    if (found->second > answered_up_to) outcome.score = has_answer ? Score{0, 0} : Score{1, 1};
  }
  Json result = {{"metrics", version_2_metrics(outcomes.list)}, {"missing", outcomes.missing}};
  const auto unanswerable = std::count_if(gold.begin(), gold.end(), [](const auto& q) { return !q.has_answer(); });
  const BestThreshold best_exact = best_threshold(std::move(exact), unanswerable),
                      best_f1 = best_threshold(std::move(f1), unanswerable);
  result["metrics"].update({{"best_exact", best_exact.score},
                            {"best_exact_thresh", best_exact.threshold},
                            {"best_f1", best_f1.score},
                            {"best_f1_thresh", best_f1.threshold}});
  return result;
}

}  // namespace etc::squad
