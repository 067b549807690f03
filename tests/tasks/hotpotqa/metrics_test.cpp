// The official scores against the worked examples and the official script's own numbers.
#include "tasks/hotpotqa/metrics.h"

#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/hotpotqa/prediction_file.h"
#include "tasks/text/answer_text.h"
#include "tests/support/catch.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using namespace etc::hotpotqa;

namespace {

using Facts = std::vector<SupportingFact>;

void check_score(const Score& score, double em, double f1, double precision, double recall) {
  CHECK(score.em == Approx(em).margin(1e-6));
  CHECK(score.f1 == Approx(f1).margin(1e-6));
  CHECK(score.precision == Approx(precision).margin(1e-6));
  CHECK(score.recall == Approx(recall).margin(1e-6));
}

// The worked records of task-hotpotqa 6.5.
struct Worked {
  std::string prediction, gold;
  Facts predicted_facts, gold_facts;
};
std::vector<Worked> worked_records() {
  const SupportingFact a0{"A", 0}, b1{"B", 1}, b2{"B", 2}, c0{"C", 0};
  return {{"Kingdom of Norway", "the Kingdom of Norway.", {a0, b2}, {a0, b2}},
          {"north river bridge", "River Bridge", {a0, b1, c0}, {a0, b2}},
          {"yes", "Yes.", {a0}, {a0, b2}},
          {"no", "noanswer", {}, {a0}},
          {"no way", "no", {a0, a0, b1}, {a0, b1}},
          {"the", "an", {}, {}},
          {"to be or not to be", "to be", {a0}, {a0}}};
}

std::map<std::string, double> means_of(bool third_answered) {
  ScoreSum sum;
  const auto records = worked_records();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Worked& r = records[i];
    const bool answered = i != 2 || third_answered;
    sum.add(score({"id", r.gold, r.gold_facts}, answered ? &r.prediction : nullptr, &r.predicted_facts));
  }
  return sum.means();
}

double difference(const Json& expected, const Json& got, const std::string& key) {
  return std::abs(expected.at(key).get<double>() - got.at(key).get<double>());
}

// Requires two objects to have the same keys.
void require_keys(const Json& expected, const Json& got) {
  std::set<std::string> names[2];
  for (const auto& [key, value] : expected.items()) names[0].insert(key);
  for (const auto& [key, value] : got.items()) names[1].insert(key);
  REQUIRE(names[0] == names[1]);
}

constexpr double kTolerance = 1e-12;

}  // namespace

TEST_CASE("scores give the worked numbers record by record", "[tasks][hotpotqa]") {
  const auto records = worked_records();
  const auto all = [&](std::size_t i) {
    const Worked& r = records[i];
    return score({"id", r.gold, r.gold_facts}, &r.prediction, &r.predicted_facts);
  };
  check_score(*all(0).joint, 1, 1, 1, 1);
  check_score(*all(1).answer, 0, 0.8, 0.666667, 1);
  check_score(*all(1).facts, 0, 0.4, 0.333333, 0.5);
  check_score(*all(1).joint, 0, 0.307692, 0.222222, 0.5);
  check_score(*all(2).answer, 1, 1, 1, 1);
  check_score(*all(2).joint, 0, 0.666667, 1, 0.5);
  check_score(*all(3).answer, 0, 0, 0, 0);
  check_score(*all(3).facts, 0, 0, 0, 0);
  check_score(*all(4).answer, 0, 0, 0, 0);
  check_score(*all(4).facts, 1, 1, 1, 1);
  check_score(*all(5).answer, 1, 0, 0, 0);
  check_score(*all(5).facts, 1, 0, 0, 0);
  check_score(*all(5).joint, 1, 0, 0, 0);
  check_score(*all(6).joint, 0, 0.5, 0.333333, 1);
}

TEST_CASE("means divide by the gold records, so a missing answer counts 0 and its facts still count",
          "[tasks][hotpotqa]") {
  auto means = means_of(true);
  for (const auto& [name, value] : std::map<std::string, double>{{"em", 0.428571},
                                                                 {"f1", 0.471429},
                                                                 {"prec", 0.428571},
                                                                 {"recall", 0.571429},
                                                                 {"sp_em", 0.571429},
                                                                 {"sp_f1", 0.580952},
                                                                 {"sp_prec", 0.619048},
                                                                 {"sp_recall", 0.571429},
                                                                 {"joint_em", 0.285714},
                                                                 {"joint_f1", 0.353480},
                                                                 {"joint_prec", 0.365079},
                                                                 {"joint_recall", 0.428571}}) {
    INFO(name);
    CHECK(means.at(name) == Approx(value).margin(1e-6));
  }
  CHECK(means.size() == 12);
  const auto missing = means_of(false);
  CHECK(missing.at("em") == Approx(2.0 / 7));
  CHECK(missing.at("f1") == Approx(2.3 / 7));
  CHECK(missing.at("sp_f1") == means.at("sp_f1"));
  CHECK(missing.at("joint_f1") == Approx(means.at("joint_f1") - 2.0 / 3 / 7));
}

TEST_CASE("confusion counts tell gold and predicted kinds of answer", "[tasks][hotpotqa]") {
  Confusion confusion;
  for (const auto& [prediction, gold] : std::vector<std::pair<std::string, std::string>>{{"Oslo", "oslo"},
                                                                                         {"Bergen", "Oslo"},
                                                                                         {"", "Oslo"},
                                                                                         {"yes", "Oslo"},
                                                                                         {"no", "Oslo"},
                                                                                         {"the", "a"},
                                                                                         {"Yes", "yes"},
                                                                                         {"no", "yes"},
                                                                                         {"Oslo", "yes"},
                                                                                         {"", "yes"},
                                                                                         {"no", "no."},
                                                                                         {"", "no"}}) {
    confusion.add(prediction, gold);
  }
  CHECK(confusion.counts() == Json({{"A_A", 2},
                                    {"A_B", 1},
                                    {"A_E", 1},
                                    {"A_Y", 1},
                                    {"A_N", 1},
                                    {"Y_Y", 1},
                                    {"Y_N", 1},
                                    {"Y_A", 1},
                                    {"Y_E", 1},
                                    {"N_N", 1},
                                    {"N_E", 1}}));
  CHECK(confusion.shares().at("N_E") == 0.5);
  CHECK(confusion.shares().at("Y_Y") == 0.25);
}

TEST_CASE("an evaluation names the ids of either side that the other lacks", "[tasks][hotpotqa]") {
  PredictionSet predictions;
  predictions.answers = {{"1", "x"}, {"9", "y"}};
  predictions.supporting_facts = {{"2", {}}, {"8", {}}};
  const Json result = evaluate(predictions, {{"1", "x", {}}, {"2", "y", {}}});
  CHECK(result.at("missing_answers") == Json({"2"}));
  CHECK(result.at("missing_supporting_facts") == Json({"1"}));
  CHECK(result.at("unknown_ids") == Json({"8", "9"}));
  CHECK(result.at("metrics").at("em") == 0.5);
  CHECK(result.at("metrics").at("joint_em") == 0);
  CHECK_THROWS_AS(evaluate(predictions, {}), Error);
}

TEST_CASE("scores equal the official script's on every golden prediction file", "[tasks][hotpotqa][golden]") {
  const auto files = test::golden_named("hotpotqa_eval", ".json");
  const auto data = test::real_data_folder();
  if (files.empty() || !data) return test::skip("no golden file hotpotqa_eval*.json");
  for (const auto& path : files) {
    INFO(path.filename().string());
    const Json golden = read_json_file(path);
    for (const Json& expected : golden.at("evaluations")) {
      const auto name = expected.at("prediction").get<std::string>();
      INFO(name);
      auto prediction_path = path.parent_path() / name;
      if (!std::filesystem::exists(prediction_path)) prediction_path = *data / "golden" / name;
      const PredictionSet predictions = read_predictions(prediction_path);
      const auto gold = read_gold({*data / "hotpotqa" / expected.at("gold").get<std::string>()});
      const Json result = evaluate(predictions, gold);
      CHECK(expected.at("records") == gold.size());
      CHECK(expected.at("records_answered") == std::ssize(gold) - std::ssize(result.at("missing_answers")));
      require_keys(expected.at("metrics"), result.at("metrics"));
      for (const auto& [key, value] : expected.at("metrics").items()) {
        INFO(key);
        CHECK(difference(expected.at("metrics"), result.at("metrics"), key) <= kTolerance);
      }
      Json confusion = Json::object();
      for (const auto& [key, value] : result.at("confusion").at("counts").items()) confusion["counts/" + key] = value;
      for (const auto& [key, value] : result.at("confusion").at("shares").items()) {
        confusion["percentages/" + key] = value;
      }
      const Json& golden_confusion = expected.at("confusion_over_answered_records");
      require_keys(golden_confusion, confusion);
      for (const auto& [key, value] : golden_confusion.items()) {
        INFO(key);
        CHECK(difference(golden_confusion, confusion, key) <= kTolerance);
      }
      REQUIRE(expected.at("per_record").size() == gold.size());
      std::set<std::string> seen;
      for (const Json& record : expected.at("per_record")) {
        const auto id = record.at("_id").get<std::string>();
        INFO(id);
        REQUIRE(seen.insert(id).second);
        const auto wanted = std::find_if(gold.begin(), gold.end(), [&](const GoldRecord& g) { return g.id == id; });
        REQUIRE(wanted != gold.end());
        const auto answer = predictions.answers.find(id);
        const auto facts = predictions.supporting_facts.find(id);
        const RecordScores scores = score(*wanted, answer == predictions.answers.end() ? nullptr : &answer->second,
                                          facts == predictions.supporting_facts.end() ? nullptr : &facts->second);
        const auto check = [&](const std::string& prefix, const std::optional<Score>& ours) {
          REQUIRE(record.contains(prefix + "em") == ours.has_value());
          if (!ours) return;
          const Json values = {{prefix + "em", ours->em},
                               {prefix + "f1", ours->f1},
                               {prefix + "prec", ours->precision},
                               {prefix + "recall", ours->recall}};
          for (const auto& [key, value] : values.items()) CHECK(difference(record, values, key) <= kTolerance);
        };
        check("", scores.answer);
        check("sp_", scores.facts);
        check("joint_", scores.joint);
        REQUIRE(record.contains("prediction_normalized") == scores.answer.has_value());
        CHECK(text::normalised_answer(wanted->answer) == record.at("gold_normalized").get<std::string>());
        if (scores.answer) {
          CHECK(text::normalised_answer(answer->second) == record.at("prediction_normalized").get<std::string>());
        }
      }
    }
  }
}

TEST_CASE("normalisation and single scores equal the official script's", "[tasks][hotpotqa][golden]") {
  const auto files = test::golden_named("hotpotqa_eval", ".json");
  if (files.empty()) return test::skip("no golden file hotpotqa_eval*.json");
  for (const auto& path : files) {
    const Json golden = read_json_file(path);
    for (const Json& one : golden.at("normalize")) {
      INFO(json_line(one));
      CHECK(text::normalised_answer(one.at("input").get<std::string>()) == one.at("output").get<std::string>());
    }
    const auto check = [](const Json& expected, const Score& ours) {
      INFO(json_line(expected));
      CHECK(std::abs(expected.at("em").get<double>() - ours.em) <= kTolerance);
      CHECK(std::abs(expected.at("f1").get<double>() - ours.f1) <= kTolerance);
      CHECK(std::abs(expected.at("precision").get<double>() - ours.precision) <= kTolerance);
      CHECK(std::abs(expected.at("recall").get<double>() - ours.recall) <= kTolerance);
    };
    for (const Json& one : golden.at("pairs")) {
      check(one, answer_score(one.at("prediction").get<std::string>(), one.at("gold").get<std::string>()));
    }
    for (const Json& one : golden.at("supporting_facts")) {
      const auto facts = [&](const char* side) {
        Facts list;
        for (const Json& fact : one.at(side)) list.push_back({fact.at(0), fact.at(1)});
        return list;
      };
      check(one, supporting_fact_score(facts("prediction"), facts("gold")));
    }
  }
}
