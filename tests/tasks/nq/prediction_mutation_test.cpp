// Damaged prediction and gold files: an error with a message, or scores.
#include "tasks/registry.h"
#include "tests/tasks/nq/small_records.h"
#include "tests/tasks/prediction_mutants.h"

using namespace etc;

namespace {

// Two pages with five annotations each: short answers for one, yes for the other.
std::string gold_text() {
  Json spans = test::worked_nq_record(), yes = spans;
  for (Json* record : {&spans, &yes}) {
    const Json annotation = (*record)["annotations"][0];
    (*record)["annotations"] = Json::array({annotation, annotation, annotation, annotation, annotation});
  }
  yes["example_id"] = 5;
  for (Json& annotation : yes["annotations"]) {
    annotation.update({{"yes_no_answer", "YES"}, {"short_answers", Json::array()}});
  }
  return json_line(spans) + "\n" + json_line(yes) + "\n";
}

const std::string kPredictions = R"({"predictions": [
  {"example_id": -4711000000000000123, "yes_no_answer": "NONE", "long_answer_score": 4.5, "short_answers_score": 8.5,
   "long_answer": {"start_token": 9, "end_token": 17, "start_byte": -1, "end_byte": -1},
   "short_answers": [{"start_token": 11, "end_token": 15, "start_byte": -1, "end_byte": -1}]},
  {"example_id": 5, "yes_no_answer": "yes", "long_answer_score": 1e3, "short_answers_score": -2, "short_answers": [],
   "long_answer": {"start_token": 9, "end_token": 17, "start_byte": 49, "end_byte": 85}}]})";

void run_mutants(std::uint64_t count) {
  const bool both =
      test::run_prediction_mutants(kPredictions, gold_text(), count, [](const auto& file, const auto& gold) {
        const double f1 = task_kind("nq").score(file, {gold}).at("average_f1");
        CHECK((f1 >= 0 && f1 <= 1));
      });
  CHECK(both);
}

}  // namespace

TEST_CASE("damaged prediction and gold files give an error or scores", "[tasks][nq]") {
  run_mutants(200);
}

TEST_CASE("many more damaged prediction and gold files give an error or scores", "[tasks][nq][slow]") {
  run_mutants(5000);
}
