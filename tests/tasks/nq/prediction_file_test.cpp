// Prediction and gold files: what is read, and the error messages for bad files.
#include "tasks/nq/prediction_file.h"

#include "etc_core/base/error.h"
#include "tasks/registry.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::nq;

namespace {

template <typename Act>
std::string message_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The error message of parsing a prediction file with one entry that has these additional members.
std::string prediction_message(const std::string& members) {
  const Json json = Json::parse(R"({"predictions": [{"example_id": 7)" + members + "}]}");
  return message_of([&] { parse_predictions({json, "p.json"}); });
}

const std::string kScores = R"(, "long_answer_score": 1, "short_answers_score": 2)";

}  // namespace

TEST_CASE("a prediction file is read in its official form", "[tasks][nq]") {
  const Json json = Json::parse(R"({"predictions": [
    {"example_id": -9223372036854775808, "yes_no_answer": "NONE", "long_answer_score": 4.5, "short_answers_score": 8.5,
     "long_answer": {"start_token": 9, "end_token": 17, "start_byte": -1, "end_byte": -1},
     "short_answers": [{"start_token": 11, "end_token": 15, "start_byte": -1, "end_byte": -1}]},
    {"example_id": 5, "long_answer_score": 0, "short_answers_score": 1, "yes_no_answer": "yes"}]})");
  const PredictionMap map = parse_predictions({json, "p"});
  REQUIRE(map.size() == 2);
  const Prediction& first = map.at(INT64_MIN);
  CHECK(first.long_answer.end_token == 17);
  CHECK(first.short_answers.at(0).start_token == 11);
  CHECK(first.short_score == 8.5);
  CHECK(map.at(5).long_answer.null());
  CHECK(map.at(5).yes_no == YesNo::yes);
}

TEST_CASE("of a repeated id the last entry counts, predicted or gold", "[tasks][nq]") {
  const Json json = Json::parse(R"({"predictions": [
    {"example_id": 5, "long_answer_score": 1, "short_answers_score": 1},
    {"example_id": 6, "long_answer_score": 2, "short_answers_score": 2},
    {"example_id": 5, "long_answer_score": 3, "short_answers_score": 3}]})");
  const PredictionMap map = parse_predictions({json, "p"});
  REQUIRE(map.size() == 2);
  CHECK(map.at(5).long_score == 3);
  const test::TemporaryFolder folder;
  const auto record = [](int id, int start) {
    const Json span = {{"start_token", start}, {"end_token", 9}};
    Json annotations = Json::array();
    if (start > 0) annotations.push_back({{"long_answer", span}});
    return json_line(Json{{"example_id", id}, {"annotations", annotations}}) + "\n";
  };
  test::write_file(folder / "g.jsonl", record(5, 1) + record(6, 2) + record(7, 3) + record(5, 4) + record(7, 0));
  const Gold gold = read_gold({folder / "g.jsonl"});
  REQUIRE(gold.documents.size() == 2);
  CHECK(gold.documents[0].example_id == 5);
  CHECK(gold.documents[0].annotations.at(0).long_answer.start_token == 4);
  CHECK(gold.documents[1].example_id == 6);
  CHECK(gold.unannotated == std::vector<std::int64_t>{7});
}

TEST_CASE("bad predictions are errors with position, id and field", "[tasks][nq]") {
  CHECK(prediction_message(kScores).empty());
  CHECK(prediction_message(R"(, "long_answer_score": 1)") ==
        "p.json: id 7: predictions[0]: expected a member \"short_answers_score\", found none");
  CHECK(prediction_message(R"(, "long_answer_score": "1", "short_answers_score": 2)") ==
        "p.json: id 7: predictions[0].long_answer_score: expected a finite number, got \"1\"");
  CHECK(prediction_message(kScores + R"(, "yes_no_answer": "maybe")") ==
        "p.json: id 7: predictions[0].yes_no_answer: expected yes, no or none, got \"maybe\"");
  CHECK(prediction_message(kScores + R"(, "long_answer": {"start_token": 3, "end_token": -1})") ==
        "p.json: id 7: predictions[0].long_answer: one token bound is negative: 3, -1");
  CHECK(prediction_message(kScores + R"(, "short_answers": [{"start_byte": 3, "end_byte": 3}])") ==
        "p.json: id 7: predictions[0].short_answers[0]: expected start byte < end byte, got 3, 3");
  CHECK(prediction_message(kScores +
                           R"(, "yes_no_answer": "no", "short_answers": [{"start_token": 3, "end_token": 4}])") ==
        "p.json: id 7: predictions[0]: expected either yes or no, or short answers, got both");
  CHECK(prediction_message(R"(}, {"example_id": "7")").find("p.json") == 0);
  const Json list = Json::array();
  CHECK(message_of([&] { parse_predictions({list, "p.json"}); }) == "p.json: expected an object, got []");
}

TEST_CASE("ids of gold records are 64-bit integers, in simplified test files as strings", "[tasks][nq]") {
  const auto id = [](const char* text) {
    const Json json = Json::parse(text);
    return example_id({json, "g"});
  };
  CHECK(id(R"({"example_id": -9223372036854775807})") == -9223372036854775807);
  CHECK(id(R"({"example_id": "-4711"})") == -4711);
  CHECK_THROWS_AS(id(R"({"example_id": "47x"})"), Error);
  CHECK_THROWS_AS(id(R"({"example_id": "99999999999999999999"})"), Error);
  CHECK_THROWS_AS(id(R"({"example_id": 1.5})"), Error);
}

TEST_CASE("predictions and gold must have the same ids, unannotated documents aside", "[tasks][nq]") {
  const test::TemporaryFolder folder;
  const auto score = [&](const std::string& predictions, const std::string& gold) {
    test::write_file(folder / "p.json", predictions);
    test::write_file(folder / "g.jsonl", gold);
    return task_kind("nq").score(folder / "p.json", {folder / "g.jsonl"});
  };
  const auto entry = [](int id) { return R"({"example_id": )" + std::to_string(id) + kScores + "}"; };
  const std::string annotated =
      R"({"example_id": 1, "annotations": [{"long_answer": {"start_token": 1, "end_token": 2}}]})";
  const std::string gold = annotated + "\n" + R"({"example_id": 2, "annotations": []})" + "\n";
  const std::string both = R"({"predictions": [)" + entry(1) + "," + entry(2) + "]}";
  const Json result = score(both, gold);
  CHECK(result.at("documents") == 1);
  CHECK(result.at("unannotated") == 1);
  CHECK(result.at("thresholds").at("long").size() == 1);
  CHECK(message_of([&] {
          score(R"({"predictions": []})", gold);
        }).ends_with("p.json: no prediction for 1 gold documents: 1"));
  std::string many = entry(1);
  for (int id = 3; id < 15; ++id) many += "," + entry(id);
  CHECK(
      message_of([&] { score(R"({"predictions": [)" + many + "]}", gold); })
          .ends_with(
              "p.json: 12 predictions for documents that are not in gold: 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more"));
  CHECK(
      message_of([&] { score(R"({"predictions": [)" + entry(3) + "]}", gold); })
          .ends_with("p.json: no prediction for 1 gold documents: 1; 1 predictions for documents that are not in gold: "
                     "3"));
  CHECK(message_of([&] {
          score(both, R"({"example_id": 1, "annotations": [{"short_answers": [3]}]})");
        }).ends_with("g.jsonl: line 1: id 1: annotations[0].short_answers[0]: expected an object, got 3"));
  CHECK(message_of([&] {
          score(R"({"predictions": []})", R"({"example_id": 2})");
        }).find("annotated document to compare with") != std::string::npos);
}
