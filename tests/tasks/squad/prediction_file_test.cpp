// Prediction, odds and gold files: what is read, what is refused, and damaged files.
#include "tasks/squad/prediction_file.h"

#include <cmath>

#include "tasks/squad/squad_task.h"
#include "tests/support/catch.h"
#include "tests/support/written_files.h"
#include "tests/tasks/prediction_mutants.h"

using namespace etc;
using namespace etc::squad;

namespace {

constexpr const char* kGold = R"({"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "x y z",
"qas": [{"id": "1", "question": "q", "is_impossible": false, "answers": [{"text": "y z", "answer_start": 2}]},
 {"question": "q", "is_impossible": true, "answers": [], "id": "2"}]}]}]})";

void run_gold_mutants(std::uint64_t count) {
  const bool both =
      test::run_prediction_mutants(R"({"1": "y", "2": ""})", kGold, count, [](const auto& p, const auto& g) {
        const Json scores = task_kind().score(p, {g});
        for (const auto& [name, value] : scores.at("metrics").items()) {
          CAPTURE(name);
          CHECK((value.template get<double>() >= 0 && value.template get<double>() <= 100));
        }
      });
  CHECK(both);
}

}  // namespace

TEST_CASE("gold files say by is_impossible that they are of version 2.0", "[squad]") {
  const test::WrittenFiles files;
  const Gold gold = read_gold({files.write("g.json", kGold)});
  REQUIRE(gold.questions.size() == 2);
  CHECK(gold.version == Version::v2_0);
  CHECK(gold.questions[0].answers == std::vector<std::string>{"y z"});
  CHECK(!gold.questions[1].has_answer());
  const auto one = files.write(
      "1.json", R"({"data": [{"paragraphs": [{"context": "", "qas": [{"id": "1", "answers": [{"text": "a"}]}]}]}]})");
  CHECK(read_gold({one}).version == Version::v1_1);
  CHECK_THROWS_WITH(read_gold({one, one}), Catch::Contains("id 1 occurs twice"));
}

TEST_CASE("null odds may be infinite", "[squad]") {
  const test::WrittenFiles files;
  const NullOdds odds = read_null_odds(files.write("o.json", R"({"1": -2.5, "2": null})"));
  CHECK(odds.at("1") == -2.5);
  CHECK(std::isinf(odds.at("2")));
  CHECK_THROWS_WITH(read_null_odds(files.write("p.json", R"({"1": "x"})")), Catch::Contains("p.json: 1: expected"));
}

TEST_CASE("predictions for unknown questions are an error that lists up to five", "[squad]") {
  const test::WrittenFiles files;
  const auto gold = files.write("g.json", kGold);
  const auto unknown =
      files.write("p.json", R"({"1": "", "u1": "", "u2": "", "u3": "", "u4": "", "u5": "", "u6": ""})");
  CHECK_THROWS_WITH(task_kind().score(unknown, {gold}),
                    Catch::Contains("p.json: 6 predictions") && Catch::Contains("u1, u2, u3, u4, u5, …"));
  CHECK_THROWS_WITH(task_kind().score(files.write("q.json", R"(["x"])"), {gold}), Catch::Contains("q.json"));
  CHECK_THROWS_WITH(task_kind().score(files.write("r.json", R"({"1": 4})"), {gold}), Catch::Contains("r.json: 1"));
}

TEST_CASE("damaged SQuAD prediction and gold files give an error or scores", "[squad]") {
  run_gold_mutants(200);
}

TEST_CASE("many more damaged SQuAD prediction and gold files give an error or scores", "[squad][slow]") {
  run_gold_mutants(5000);
}
