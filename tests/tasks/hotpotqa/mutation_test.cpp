// Damaged files: raw records give faults or examples that the feed accepts; prediction and gold files give an error or
// scores.
#include "etc_core/base/error.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/hotpotqa/feed.h"
#include "tasks/hotpotqa/prediction_file.h"
#include "tests/tasks/hotpotqa/examples.h"
#include "tests/tasks/prediction_mutants.h"
#include "tests/tasks/raw_mutants.h"

using namespace etc;
using namespace etc::hotpotqa;

namespace {

// Three records with everything that a file may contain: unknown keys, escapes, white space, repeated titles.
Json base_records() {
  Json odd = test::worked_hotpotqa_record("yes", "o");
  odd["annotations"] = {{"follows", "single"}};
  odd["question"] = "q0 \u00a0 q1\u2026 \u0301 [CLS] ##q2";
  odd["context"].push_back(Json::parse(R"json(["a0", ["", " no known", "\u201cy0\u201d y1. (z0/z0)"]])json"));
  odd["supporting_facts"].push_back(Json::parse(R"(["a0", 2])"));
  return {test::worked_hotpotqa_record("z1", "1"), odd, test::worked_hotpotqa_record("y0 y1", "3")};
}

void run_raw_mutants(std::uint64_t count) {
  std::vector<std::unique_ptr<prepare::JsonPreparation>> preparations;
  for (const bool labels : {true, false}) {
    for (const auto parity : {Parity::reference, Parity::repaired}) {
      PrepareConfig config = test::hotpotqa_config(parity, 20, 12);
      config.labels_required = config.is_training = labels;
      preparations.push_back(std::make_unique<HotpotqaPreparation>(config, test::hotpotqa_tokenizer()));
    }
  }
  const EtcConfig model = test::tiny_hotpotqa_model();
  test::RawMutants mutants(std::move(preparations),
                           {[&](const data::Example& example) { check_example(example, model, "mutant"); }});
  mutants.run(base_records(), count);
}

void run_prediction_mutants(std::uint64_t count) {
  const std::string predictions =
      R"({"answer": {"1": "z1", "o": "yes", "3": ""}, "sp": {"1": [["a0", 1], ["b0 b1", 0]], "o": [], "3": [["a0", 2]]}})";
  const bool both =
      test::run_prediction_mutants(predictions, base_records().dump(2), count, [](const auto& file, const auto& gold) {
        test::check_metrics(evaluate(read_predictions(file), read_gold({gold})));
      });
  CHECK(both);
}

}  // namespace

TEST_CASE("damaged HotpotQA files give faults or valid examples", "[hotpotqa]") {
  run_raw_mutants(200);
}

TEST_CASE("damaged prediction and gold files give an error or scores", "[hotpotqa]") {
  run_prediction_mutants(200);
}

TEST_CASE("many more damaged HotpotQA files give faults or valid examples", "[hotpotqa][slow]") {
  run_raw_mutants(5000);
}

TEST_CASE("many more damaged prediction and gold files give an error or scores", "[hotpotqa][slow]") {
  run_prediction_mutants(5000);
}
