// Prediction and gold files: what is read, and the error messages for bad files.
#include "tasks/hotpotqa/prediction_file.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/file_message.h"

using namespace etc;
using namespace etc::hotpotqa;

namespace {

std::string prediction_message(const std::string& text) {
  return test::message_of_file("p.json", text, [](const auto& path) { read_predictions(path); });
}

std::string gold_message(const std::string& text) {
  return test::message_of_file("p.json", text, [](const auto& path) { read_gold({path}); });
}

}  // namespace

TEST_CASE("a prediction file is read in its official form", "[tasks][hotpotqa]") {
  const Json json = Json::parse(R"({"answer": {"a": "x", "b": ""}, "sp": {"a": [["T", 0], ["U", 3]], "c": []}})");
  const PredictionSet set = parse_predictions({json, "p"});
  CHECK(set.answers == std::map<std::string, std::string>{{"a", "x"}, {"b", ""}});
  CHECK(set.supporting_facts.at("a") == std::vector<SupportingFact>{{"T", 0}, {"U", 3}});
  CHECK(set.supporting_facts.at("c").empty());
}

TEST_CASE("bad prediction files are errors with file, id and element", "[tasks][hotpotqa]") {
  CHECK(prediction_message("[]") == "p.json: expected an object, got []");
  CHECK(prediction_message(R"({"answer": {}})") == "p.json: expected a member \"sp\", found none");
  CHECK(prediction_message(R"({"answer": {"id1": 3}, "sp": {}})") == "p.json: answer.id1: expected a string, got 3");
  CHECK(prediction_message(R"({"answer": {"id1": null}, "sp": {}})") ==
        "p.json: answer.id1: expected a string, got null");
  CHECK(prediction_message(R"({"answer": [], "sp": {}})") == "p.json: answer: expected an object, got []");
  CHECK(prediction_message(R"({"answer": {}, "sp": {"id1": "T"}})") == "p.json: sp.id1: expected an array, got \"T\"");
  CHECK(prediction_message(R"({"answer": {}, "sp": {"id1": [["T", 0], ["T"]]}})") ==
        "p.json: sp.id1[1]: expected [title, sentence number], got [\"T\"]");
  CHECK(prediction_message(R"({"answer": {}, "sp": {"id1": [["T", "0"]]}})") ==
        "p.json: sp.id1[0][1]: expected an integer of at most 64 bits, got \"0\"");
  CHECK(prediction_message(R"({"answer": {}, "sp": {"id1": [[0, 0]]}})") ==
        "p.json: sp.id1[0][0]: expected a string, got 0");
  CHECK(prediction_message(R"({"answer": {"id1": "x", "id1": "y"}, "sp": {}})") ==
        "p.json: duplicate key \"id1\" in answer");
  CHECK(prediction_message(R"({"answer": {"id1": "x")").find("not valid JSON") != std::string::npos);
}

TEST_CASE("bad gold records are errors with file, record and id", "[tasks][hotpotqa]") {
  const std::string good = R"({"_id": "a", "answer": "x", "supporting_facts": [["T", 0]]})";
  CHECK(gold_message("[" + good + "]").empty());
  CHECK(gold_message(R"([{"answer": "x"}])") == "p.json: record 0: expected a member \"_id\", found none");
  CHECK(gold_message(R"([{"_id": "a", "supporting_facts": []}])") ==
        "p.json: record 0: id a: expected a member \"answer\", found none");
  CHECK(gold_message(R"([{"_id": "a", "answer": "x", "supporting_facts": [["T", 0.5]]}])") ==
        "p.json: record 0: id a: supporting_facts[0][1]: expected an integer of at most 64 bits, got 0.5");
  CHECK(gold_message("[" + good + ", " + good + "]").starts_with("p.json: record 1: id a occurs twice, first at "));
}
