#include "etc_core/base/json.h"

#include "etc_core/base/error.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("JSON with a duplicate key is refused, naming the key", "[base]") {
  REQUIRE_THROWS_WITH(parse_json(R"({"a": 1, "a": 2})", "run.json"), Catch::Contains("run.json: duplicate key \"a\""));
  REQUIRE(parse_json(R"({"a": {"a": 1}, "b": {"a": 2}})", "run.json")["b"]["a"] == 2);
}

TEST_CASE("broken JSON is refused with the place", "[base]") {
  REQUIRE_THROWS_WITH(parse_json("{\"a\": ", "run.json"),
                      Catch::Contains("run.json: not valid JSON: parse error at line 1"));
}

TEST_CASE("JSON nested 10,000 deep is refused, not a stack overflow", "[base]") {
  REQUIRE_THROWS_WITH(parse_json(std::string(10000, '['), "deep.json"), Catch::Contains("at most 512 levels"));
}

TEST_CASE("a mistyped word gets its nearest neighbour as suggestion, a strange one none", "[base]") {
  const std::vector<std::string> known = {"learning_rate", "batch_size", "epochs"};
  REQUIRE(suggestion("lerning_rate", known) == " (did you mean learning_rate?)");
  REQUIRE(suggestion("colour", known).empty());
}
