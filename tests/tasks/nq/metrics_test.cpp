// The official scores against the worked examples and the numbers of the official scorer.
#include "tasks/nq/metrics.h"

#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/nq/prediction_file.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/tasks/golden_named.h"

using namespace etc;
using namespace etc::nq;

namespace {

Outcome item(int has_gold, int has_prediction, int correct, double score) {
  return {has_gold != 0, has_prediction != 0, correct != 0, score};
}

Span tokens(std::int64_t start, std::int64_t end) {
  return {start, end, -1, -1};
}

Prediction predicted(Span long_answer, std::vector<Span> short_answers, YesNo yes_no = YesNo::none) {
  Prediction p;
  p.long_answer = long_answer;
  p.short_answers = std::move(short_answers);
  p.yes_no = yes_no;
  return p;
}

std::vector<int> flags(const Outcome& o) {
  return {o.has_gold ? 1 : 0, o.has_prediction ? 1 : 0, o.correct ? 1 : 0};
}

constexpr double kTolerance = 1e-12;

// Requires the predictions of a case named DECODE|SETTING to be those of the golden decode, for the documents that are
// scored.
void require_decoded(const test::GoldenFile& decodes, const std::string& name, const Json& predictions) {
  const std::size_t bar = name.find('|');
  if (bar == std::string::npos) return;
  const Json all = Json::parse(decodes.read_strings(name.substr(0, bar) + "/predictions_json").at(0));
  std::map<std::int64_t, Json> decoded;
  for (const Json& one : all.at(name.substr(bar + 1)).at("predictions")) decoded[one.at("example_id")] = one;
  for (const Json& one : predictions) CHECK(one == decoded.at(one.at("example_id").get<std::int64_t>()));
}

}  // namespace

TEST_CASE("the threshold table gives the worked numbers", "[tasks][nq]") {
  const std::vector<Outcome> outcomes = {item(1, 1, 1, 5), item(1, 1, 1, 9), item(0, 1, 0, 7), item(1, 0, 0, 1),
                                         item(1, 1, 0, 3)};
  const ThresholdTable table = threshold_table(outcomes);
  std::vector<double> f1;
  for (const ThresholdPoint& p : table.points) f1.push_back(p.f1);
  REQUIRE(f1.size() == 5);
  CHECK(f1[0] == Approx(0.4));
  CHECK(f1[1] == Approx(1.0 / 3));
  CHECK(f1[2] == Approx(0.571429).margin(1e-6));
  CHECK(f1[3] == Approx(0.5));
  CHECK(f1[4] == Approx(0.5));
  CHECK(table.best.threshold == 5);
  CHECK(table.best.precision == Approx(2.0 / 3));
  CHECK(table.best.recall == 0.5);
  CHECK(recall_at_precision(table, 0.5).recall == 0.5);
  CHECK(recall_at_precision(table, 0.5).precision == Approx(2.0 / 3));
  CHECK(recall_at_precision(table, 0.75).recall == 0.25);
  CHECK(recall_at_precision(table, 0.9).precision == 1);
  CHECK(ignoring_scores(outcomes).f1 == 0.5);
}

TEST_CASE("equal scores stand or fall together", "[tasks][nq]") {
  const ThresholdTable table =
      threshold_table({item(1, 1, 1, 4), item(0, 1, 0, 2), item(1, 1, 1, 2), item(1, 1, 1, 2), item(0, 1, 0, 1)});
  REQUIRE(table.points.size() == 3);
  CHECK(table.points[1].precision == 0.75);
  CHECK(table.points[1].recall == 1);
  CHECK(table.best.threshold == 2);
  CHECK(table.best.f1 == Approx(0.857143).margin(1e-6));
  CHECK(recall_at_precision(table, 0.75).recall == 1);
  CHECK(recall_at_precision(table, 0.9).recall == Approx(1.0 / 3));
}

TEST_CASE("a table without gold or without outcomes is all zero", "[tasks][nq]") {
  const ThresholdTable none = threshold_table({item(0, 1, 0, 3)});
  CHECK(none.best.f1 == 0);
  CHECK(none.best.threshold == 0);
  CHECK(threshold_table({}).points.empty());
}

TEST_CASE("outcomes give the worked flags", "[tasks][nq]") {
  using Flags = std::vector<int>;
  const Span answer = tokens(9, 17), first = tokens(11, 12), second = tokens(14, 15);
  GoldDocument gold;
  gold.annotations = {
      {answer, {first, second}, YesNo::none}, {answer, {first}, YesNo::none}, {tokens(3, 9), {}, YesNo::none}, {}, {}};
  const auto both = [&](const Prediction& p) {
    return std::pair<Flags, Flags>(flags(long_outcome(gold, p)), flags(short_outcome(gold, p)));
  };
  CHECK(both(predicted(answer, {tokens(11, 15)})) == std::pair<Flags, Flags>({1, 1, 1}, {1, 1, 0}));
  CHECK(both(predicted(answer, {first})) == std::pair<Flags, Flags>({1, 1, 1}, {1, 1, 1}));
  CHECK(both(predicted(tokens(3, 9), {first, second})) == std::pair<Flags, Flags>({1, 1, 1}, {1, 1, 1}));
  CHECK(both(predicted(tokens(10, 13), {})) == std::pair<Flags, Flags>({1, 1, 0}, {1, 0, 0}));
  CHECK(both(predicted(answer, {}, YesNo::yes)) == std::pair<Flags, Flags>({1, 1, 1}, {1, 1, 0}));
  CHECK(both(predicted({}, {{}})) == std::pair<Flags, Flags>({1, 0, 0}, {1, 0, 0}));

  gold.annotations = {{answer, {}, YesNo::yes}, {answer, {first}, YesNo::none}, {}, {}, {}};
  CHECK(flags(short_outcome(gold, predicted({}, {}, YesNo::yes))) == Flags{1, 1, 1});
  CHECK(flags(short_outcome(gold, predicted({}, {}, YesNo::no))) == Flags{1, 1, 0});
  CHECK(flags(short_outcome(gold, predicted({}, {first}))) == Flags{1, 1, 1});
  CHECK(flags(short_outcome(gold, predicted({}, {tokens(11, 15)}))) == Flags{1, 1, 0});

  gold.annotations = {{answer, {first}, YesNo::none}, {}};
  CHECK(flags(long_outcome(gold, predicted(answer, {}))) == Flags{0, 1, 0});
  CHECK(flags(short_outcome(gold, predicted(answer, {first}))) == Flags{0, 1, 0});
}

TEST_CASE("spans are the same by bytes or by tokens", "[tasks][nq]") {
  CHECK(same_span({3, 5, 10, 20}, {3, 5, 11, 20}));
  CHECK(same_span({3, 5, 10, 20}, {4, 5, 10, 20}));
  CHECK(!same_span({-1, -1, 10, 20}, {3, 5, -1, -1}));
  CHECK(!same_span({}, {}));
  CHECK(same_spans({{}, tokens(1, 2)}, {tokens(1, 2), tokens(1, 2)}));
  CHECK(!same_spans({tokens(1, 2), tokens(3, 4)}, {tokens(1, 2)}));
}

TEST_CASE("scores equal the official scorer's on every golden case", "[tasks][nq][golden]") {
  std::int64_t cases = 0;
  for (const auto& path : test::golden_named("nq_metrics", ".json")) {
    const Json golden = read_json_file(path);
    const test::GoldenFile decodes(path.parent_path() / "nq_decode.h5");
    CHECK(golden.at("task") == "nq");
    REQUIRE(golden.at("cases").size() > 0);
    for (const Json& one : golden.at("cases")) {
      ++cases;
      const auto name = one.at("name").get<std::string>();
      INFO(path.filename().string() << ": " << name);
      Gold gold;
      for (const Json& document : golden.at("gold_sets").at(one.at("gold").get<std::string>())) {
        gold.documents.push_back(parse_gold({document, "gold"}));
      }
      require_decoded(decodes, name, one.at("predictions"));
      PredictionMap predictions = parse_predictions({one, "predictions"});
      match_ids(predictions, gold, "predictions");
      const Json result = evaluate(predictions, gold.documents);
      const Json& expected = one.at("result");
      REQUIRE(expected.size() == 4);
      REQUIRE(expected.at("per_example").size() == gold.documents.size());
      const auto check = [&](const Json& theirs, const Json& ours) {
        REQUIRE(theirs.size() == ours.size());
        for (const auto& [key, value] : theirs.items()) {
          INFO(key);
          CHECK(std::abs(value.get<double>() - ours.at(key).get<double>()) <= kTolerance);
        }
      };
      check(expected.at("metrics"), result.at("metrics"));
      check(expected.at("ignoring_scores"), result.at("ignoring_scores"));
      CHECK(std::abs(expected.at("average_f1").get<double>() - result.at("average_f1").get<double>()) <= kTolerance);
      for (const GoldDocument& document : gold.documents) {
        const Prediction& prediction = predictions.at(document.example_id);
        const Json& wanted = expected.at("per_example").at(std::to_string(document.example_id));
        const auto as_json = [](const Outcome& o) { return Json({o.has_gold, o.has_prediction, o.correct}); };
        REQUIRE(wanted.size() == 2);
        CHECK(as_json(long_outcome(document, prediction)) == wanted.at("long"));
        CHECK(as_json(short_outcome(document, prediction)) == wanted.at("short"));
      }
    }
  }
  if (cases == 0) test::skip("no golden file nq_metrics*.json");
}
