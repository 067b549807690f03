// `etc eval --predictions`: the official scores of every task.
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"

using namespace etc;

namespace {

struct Files {
  const char* task;
  const char* predictions;
  const char* gold;
  const char* line;  // of the result
};

const Files kFiles[] = {
    {"wikihop", R"({"a": "Oslo", "b": "x"})", R"([{"id": "a", "answer": "oslo"}, {"id": "b", "answer": "y"}])",
     "string_accuracy 0.5\n"},
    {"hotpotqa", R"({"answer": {"a": "Oslo"}, "sp": {"a": [["T", 0]]}})",
     R"([{"_id": "a", "answer": "the Oslo", "supporting_facts": [["T", 0], ["T", 1]]}])", "joint_f1 0.666667\n"},
    {"nq",
     R"({"predictions": [{"example_id": 1, "long_answer_score": 1, "short_answers_score": 2,
         "long_answer": {"start_token": 1, "end_token": 2}}]})",
     R"({"example_id": 1, "annotations": [{"long_answer": {"start_token": 1, "end_token": 2}},)"
     R"( {"long_answer": {"start_token": 1, "end_token": 2}}]})",
     "long-best-threshold-f1 1\n"},
    {"openkp", R"({"url": "u", "KeyPhrases": [["deep", "sea"]]})",
     R"({"url": "u", "KeyPhrases": [["Deep", "Sea"], ["fish"]]})", "F1@1 0.666667\n"},
};

// Writes files p and g in a folder of their own, and returns the program's output for them.
test::Result scored(const test::TemporaryFolder& folder, const std::string& task, const std::string& predictions,
                    const std::string& gold) {
  test::write_file(folder / "p", predictions);
  test::write_file(folder / "g", gold);
  return test::run_program({"eval", "--task", task, "--predictions", (folder / "p").string(), "--gold",
                            (folder / "g").string(), "--output", (folder / "scores.json").string()},
                           folder.path());
}

}  // namespace

TEST_CASE("every task scores its prediction files through the same command", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  for (const Files& files : kFiles) {
    INFO(files.task);
    const test::TemporaryFolder folder;
    const test::Result result = scored(folder, files.task, files.predictions, files.gold);
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK_THAT(result.out, Catch::Contains(files.line));
    const Json scores = read_json_file(folder / "scores.json");
    CHECK(scores.at("task") == files.task);
    CHECK(!scores.at("metrics").empty());
  }
}

TEST_CASE("a prediction file that is none is an error with file and place, and nothing is written", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  for (const Files& files : kFiles) {
    for (const char* bad : {"", "[3]", "{\"answer\": 3", "{\"predictions\": [{}]}\n", "\xff"}) {
      INFO(files.task << " " << bad);
      const test::TemporaryFolder folder;
      const test::Result result = scored(folder, files.task, bad, files.gold);
      CHECK(result.code == 1);
      CHECK_THAT(result.err, Catch::StartsWith((folder / "p").string() + ":"));
      CHECK(!std::filesystem::exists(folder / "scores.json"));
    }
  }
}

TEST_CASE("ids that gold does not know and gold records without a prediction are named", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const test::Result result = scored(folder, "hotpotqa", R"({"answer": {"z": "x"}, "sp": {}})", kFiles[1].gold);
  CHECK(result.code == 0);
  CHECK_THAT(result.err, Catch::Contains("p: 1 gold records without an answer, scored 0: a"));
  CHECK_THAT(result.err, Catch::Contains("p: 1 gold records without supporting facts, scored 0: a"));
  CHECK_THAT(result.err, Catch::Contains("p: 1 predictions for records that are not in gold, ignored: z"));
  CHECK_THAT(result.out, Catch::Contains("joint_f1 0\n"));
}

TEST_CASE("what cannot be meant on the eval command line is a usage error", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const test::TemporaryFolder folder;
  const auto message = [&](const std::vector<std::string>& arguments) {
    const test::Result result = test::run_program(arguments, folder.path());
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(message({"eval", "--task", "hotpotq", "--predictions", "p", "--gold", "g"}),
             Catch::Contains("got hotpotq (did you mean hotpotqa?)"));
  CHECK_THAT(message({"eval", "--predictions", "p", "--gold", "g"}), Catch::Contains("--predictions needs --task"));
  CHECK_THAT(message({"eval", "--predictions", "p"}), Catch::Contains("expected --model and --data"));
}
