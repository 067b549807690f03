// Prediction and gold files: what is read, and the error messages for bad files.
#include "tasks/openkp/prediction_file.h"

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/file_message.h"

using namespace etc;
using namespace etc::openkp;

namespace {

std::string message_of(const std::string& text) {
  return test::message_of_file("p.jsonl", text, [](const auto& path) { read_predictions(path); });
}

}  // namespace

TEST_CASE("prediction lines are read, further members ignored", "[tasks][openkp]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "p.jsonl",
                   "{\"url\": \"a\", \"KeyPhrases\": [[\"x\", \"y\"], []], \"Scores\": [1]}\n"
                   "{\"url\": \"b\", \"KeyPhrases\": []}\n");
  CHECK(read_predictions(folder / "p.jsonl") == PhraseMap{{"a", {{"x", "y"}, {}}}, {"b", {}}});
}

TEST_CASE("of a repeated url the last record counts, predicted or gold", "[tasks][openkp]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "g.jsonl",
                   "{\"url\": \"a\", \"KeyPhrases\": [[\"x\"]]}\n"
                   "{\"url\": \"a\", \"KeyPhrases\": [[\"y\"]]}\n");
  CHECK(read_gold({folder / "g.jsonl"}) == PhraseMap{{"a", {{"y"}}}});
  CHECK(read_predictions(folder / "g.jsonl") == PhraseMap{{"a", {{"y"}}}});
}

TEST_CASE("a gold page without a key phrase is an error with its line", "[tasks][openkp]") {
  const test::TemporaryFolder folder;
  const std::string with = "{\"url\": \"a\", \"KeyPhrases\": [[\"x\"]]}\n",
                    without = "{\"url\": \"a\", \"KeyPhrases\": [[]]}\n";
  test::write_file(folder / "g.jsonl", without + with);  // the last record counts
  CHECK(read_gold({folder / "g.jsonl"}).size() == 1);
  test::write_file(folder / "g.jsonl", with + without);
  CHECK_THROWS_WITH(read_gold({folder / "g.jsonl"}),
                    Catch::Contains("g.jsonl: line 2: gold page a: no key phrase to compare with"));
}

TEST_CASE("bad prediction lines are errors with line, url and element", "[tasks][openkp]") {
  CHECK(message_of("{\"KeyPhrases\": []}") == "p.jsonl: line 1: expected a member \"url\", found none");
  CHECK(message_of("\n{\"url\": \"a\"}") == "p.jsonl: line 2: url a: expected a member \"KeyPhrases\", found none");
  CHECK(message_of(R"({"url": "a", "KeyPhrases": ["x"]})") ==
        "p.jsonl: line 1: url a: KeyPhrases[0]: expected an array, got \"x\"");
  CHECK(message_of(R"({"url": "a", "KeyPhrases": [["x", 3]]})") ==
        "p.jsonl: line 1: url a: KeyPhrases[0][1]: expected a string, got 3");
  CHECK(message_of(R"({"url": 5, "KeyPhrases": []})") == "p.jsonl: line 1: url: expected a string, got 5");
  CHECK(message_of("5") == "p.jsonl: line 1: expected an object, got 5");
  CHECK(message_of("[5]") ==
        "p.jsonl: line 1: expected an object, got 5");  // an array of records is a record file, too
}
