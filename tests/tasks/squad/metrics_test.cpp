// Official scores: golden numbers, published prediction files, corner cases.
#include "tasks/squad/metrics.h"

#include <algorithm>
#include <limits>

#include "tasks/squad/prediction_file.h"
#include "tasks/squad/squad_task.h"
#include "tasks/text/answer_text.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using namespace etc::squad;

namespace {

// The score at the best threshold, by its definition instead of a running sum. For every threshold, and for one below
// all odds, it adds the scores of the answerable questions whose odds are not above it, and one for each unanswerable
// question, predicted or not, that gets no text. In percent of the questions with a prediction.
double best_by_definition(const PredictionMap& predictions, const std::vector<GoldQuestion>& gold,
                          const NullOdds& odds) {
  std::vector<double> thresholds = {-std::numeric_limits<double>::infinity()};
  for (const auto& [id, value] : odds) thresholds.push_back(value);
  double best = 0;
  std::size_t predicted = 0;
  for (const double threshold : thresholds) {
    double sum = 0;
    predicted = 0;
    for (const GoldQuestion& question : gold) {
      const auto found = predictions.find(question.id);
      const bool known = found != predictions.end();
      predicted += known ? 1 : 0;
      const std::string answer = known && odds.at(question.id) <= threshold ? found->second : "";
      if (question.has_answer()) {
        if (!answer.empty()) sum += best_score(answer, question, Version::v2_0).exact;
      } else {
        sum += answer.empty() ? 1 : 0;
      }
    }
    best = std::max(best, sum);
  }
  return 100 * best / static_cast<double>(predicted);
}

}  // namespace

TEST_CASE("scores of single answers equal the official scripts'", "[squad][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_named("dense_reference", ".h5")) {
    const test::GoldenFile file(path);
    if (!file.has("squad/metric")) continue;
    const std::string group = "squad/metric/";
    const auto predictions = file.read_strings(group + "prediction"), gold = file.read_strings(group + "gold");
    const auto normalised_predictions = file.read_strings(group + "prediction_normalised"),
               normalised_gold = file.read_strings(group + "gold_normalised");
    const auto exact = file.read<double>(group + "exact").values;
    const auto v1 = file.read<double>(group + "f1_v1").values, v2 = file.read<double>(group + "f1_v2").values;
    for (std::size_t i = 0; i < gold.size(); ++i, ++cases) {
      CAPTURE(predictions[i], gold[i]);
      CHECK(text::normalised_answer(predictions.at(i)) == normalised_predictions.at(i));
      CHECK(text::normalised_answer(gold[i]) == normalised_gold.at(i));
      CHECK(score(predictions[i], gold[i], Version::v1_1).exact == exact[i]);
      CHECK(std::abs(score(predictions[i], gold[i], Version::v1_1).f1 - v1[i]) < 1e-12);
      CHECK(std::abs(score(predictions[i], gold[i], Version::v2_0).f1 - v2[i]) < 1e-12);
      CHECK(score(predictions[i], gold[i], Version::v2_0).exact == exact[i]);
    }
    file.require_all_read("squad/metric");
  }
  if (cases == 0) test::skip("no golden scores");
}

TEST_CASE("the best threshold equals the official script's", "[squad][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_named("dense_reference", ".h5")) {
    const test::GoldenFile file(path);
    if (!file.has("squad/best_threshold")) continue;
    ++cases;
    const std::string group = "squad/best_threshold/";
    const auto odds = file.read<double>(group + "score_diff").values,
               raw = file.read<double>(group + "raw_score").values;
    const auto has_answer = file.read<std::int64_t>(group + "has_answer").values;
    std::vector<ThresholdCase> questions;
    for (std::size_t i = 0; i < odds.size(); ++i) questions.push_back({odds[i], raw[i], has_answer[i] != 0, true});
    const BestThreshold best = best_threshold(questions, std::count(has_answer.begin(), has_answer.end(), 0));
    CHECK(std::abs(best.score - file.read<double>(group + "best_score").values[0]) < 1e-9);
    CHECK(best.threshold == file.read<double>(group + "best_threshold").values[0]);
    file.require_all_read("squad/best_threshold");
  }
  if (cases == 0) test::skip("no golden threshold");
}

TEST_CASE("published prediction files have their official scores", "[squad][golden]") {
  const auto data = test::real_data_folder();
  const auto list = data ? *data / "golden" / "squad_metrics.json" : std::filesystem::path();
  if (!data || !std::filesystem::exists(list)) return test::skip("no published predictions");
  for (const Json& one : read_json_file(list)) {
    CAPTURE(one.at("prediction").get<std::string>());
    const auto folder = list.parent_path();
    const Json scores = task_kind().score(folder / one.at("prediction").get<std::string>(),
                                          {folder / one.at("gold").get<std::string>()});
    REQUIRE(scores.at("metrics").size() == one.at("metrics").size());
    for (const auto& [name, value] : one.at("metrics").items()) {
      CAPTURE(name);
      CHECK(std::abs(scores.at("metrics").at(name).get<double>() - value.get<double>()) < 1e-9);
    }
  }
}

TEST_CASE("two empty texts are equal, and their overlap is 0 in version 1.1 and 1 in 2.0", "[squad]") {
  CHECK(score("the", "a", Version::v1_1).exact == 1);
  CHECK(score("the", "a", Version::v1_1).f1 == 0);
  CHECK(score("the", "a", Version::v2_0).f1 == 1);
  CHECK(score("x", "", Version::v2_0).f1 == 0);
}

TEST_CASE("gold answers score 100 against themselves", "[squad]") {
  const std::vector<GoldQuestion> gold = {{"a", {"One", "two words"}}, {"b", {}}};
  const Json v2 = evaluate({{"a", "two words"}, {"b", ""}}, gold, Version::v2_0).at("metrics");
  CHECK(v2.at("exact") == 100.0);
  CHECK(v2.at("f1") == 100.0);
  CHECK(v2.at("NoAns_total") == 1);
  CHECK(evaluate({{"a", "ONE."}}, {gold[0]}, Version::v1_1).at("metrics").at("f1") == 100.0);
}

TEST_CASE("a question without a prediction counts 0 in version 1.1 and is left out in 2.0", "[squad]") {
  const std::vector<GoldQuestion> gold = {{"a", {"x"}}, {"b", {"y"}}};
  const Json v1 = evaluate({{"a", "x"}}, gold, Version::v1_1), v2 = evaluate({{"a", "x"}}, gold, Version::v2_0);
  CHECK(v1.at("metrics").at("exact_match") == 50.0);
  CHECK(v2.at("metrics").at("exact") == 100.0);
  CHECK(v2.at("metrics").at("total") == 1);
  CHECK(v1.at("missing") == Json::array({"b"}));
  CHECK_THROWS_WITH(evaluate({}, gold, Version::v2_0), Catch::Contains("no question of the gold file"));
  CHECK_THROWS_WITH(evaluate({}, {}, Version::v1_1), Catch::Contains("no question to compare with"));
}

TEST_CASE("odds above the given threshold take a prediction back", "[squad]") {
  const std::vector<GoldQuestion> gold = {{"a", {"x"}}, {"b", {}}};
  const PredictionMap predictions = {{"a", "x"}, {"b", "x"}};
  const NullOdds odds = {{"a", -1}, {"b", 2}};
  const double never = std::numeric_limits<double>::infinity();
  const Json kept = evaluate_with_odds(predictions, gold, odds, never).at("metrics");
  CHECK(kept.at("exact") == 50.0);
  CHECK(kept.at("best_exact") == 100.0);
  CHECK(kept.at("best_exact_thresh") == -1.0);
  CHECK(evaluate_with_odds(predictions, gold, odds, 1).at("metrics").at("exact") == 100.0);
  CHECK_THROWS_WITH(evaluate_with_odds(predictions, gold, {}, 1), Catch::Contains("no null odds"));
}

TEST_CASE("unanswerable questions without a prediction count for the best threshold, as in the official script",
          "[squad]") {
  const std::vector<GoldQuestion> gold = {{"a", {"x"}}, {"b", {}}, {"c", {}}, {"d", {"y"}}};
  const NullOdds odds = {{"a", -1}, {"b", 2}, {"c", 3}, {"d", 0}};
  const auto metrics_of = [&](const PredictionMap& predictions) {
    return evaluate_with_odds(predictions, gold, odds, 1).at("metrics");
  };
  // All four predicted: 2 unanswerable, + 1 for a, + 1 for d, of 4.
  CHECK(metrics_of({{"a", "x"}, {"b", "q"}, {"c", ""}, {"d", "y"}}).at("best_exact") == 100.0);
  // b is missing: still 2 + 1 + 1, of 3.
  const Json metrics = metrics_of({{"a", "x"}, {"c", ""}, {"d", "y"}});
  CHECK(metrics.at("best_exact").get<double>() == Approx(400.0 / 3));
  CHECK(metrics.at("best_exact_thresh") == 0.0);
  CHECK(metrics.at("exact") == 100.0);
  CHECK(metrics.at("total") == 3);
  CHECK(metrics.at("NoAns_total") == 1);
  // d, which has an answer, is missing: 2 + 1, of 3.
  CHECK(metrics_of({{"a", "x"}, {"b", "q"}, {"c", ""}}).at("best_exact") == 100.0);
}

TEST_CASE("best thresholds of published predictions are what their definition says, some being removed",
          "[squad][golden]") {
  const auto data = test::real_data_folder();
  if (!data) return test::skip("no published predictions");
  const PredictionMap all = read_predictions(*data / "golden" / "squad2_pred_bert_single.json");
  std::vector<GoldQuestion> gold = read_gold({*data / "squad" / "squad_v2.0_dev_5_articles.json"}).questions;
  gold.resize(400);
  for (const std::uint64_t period : {0, 7, 3}) {  // every period-th prediction is missing; 0: none
    CAPTURE(period);
    PredictionMap predictions;
    NullOdds odds;
    for (std::size_t i = 0; i < gold.size(); ++i) {
      if (period > 0 && i % period == 0) continue;
      // Odds that are informative and all different.
      predictions[gold[i].id] = all.at(gold[i].id).empty() ? "The text" : all.at(gold[i].id);
      odds[gold[i].id] = (all.at(gold[i].id).empty() ? 3.0 : -3.0) + static_cast<double>(i * 7919 % 10007) / 1000;
    }
    const Json metrics = evaluate_with_odds(predictions, gold, odds, 1).at("metrics");
    CHECK(metrics.at("best_exact").get<double>() == Approx(best_by_definition(predictions, gold, odds)).epsilon(1e-12));
    CHECK(metrics.at("best_exact").get<double>() > metrics.at("exact").get<double>());
  }
}
