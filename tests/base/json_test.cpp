#include "etc_core/base/json.h"

#include "etc_core/base/error.h"
#include "etc_core/base/words.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("JSON with a duplicate key is refused, naming the key", "[base]") {
  REQUIRE_THROWS_WITH(parse_json(R"({"a": 1, "a": 2})", "run.json"), "run.json: duplicate key \"a\"");
  REQUIRE_THROWS_WITH(parse_json(R"({"b": 1, "model": {"layers": [{"a": 0}, {"a": 1, "a": 2}]}})", "run.json"),
                      "run.json: duplicate key \"a\" in model.layers[1]");
  REQUIRE(parse_json(R"({"a": {"a": 1}, "b": {"a": 2}})", "run.json")["b"]["a"] == 2);
}

TEST_CASE("broken JSON is refused with the place", "[base]") {
  REQUIRE_THROWS_WITH(parse_json("{\"a\": ", "run.json"),
                      Catch::Contains("run.json: not valid JSON: parse error at line 1"));
}

TEST_CASE("a NUL byte ends no JSON", "[base]") {
  REQUIRE_THROWS_WITH(parse_json(std::string("{}\0{\"a\": 1}", 11), "run.json"),
                      "run.json: not valid JSON: a NUL byte at byte 2");
  REQUIRE_THROWS_WITH(parse_json(std::string("{}\0", 3), "run.json"), Catch::Contains("a NUL byte at byte 2"));
  CHECK(try_parse_json(std::string("{}\0", 3)).is_discarded());
  CHECK(parse_json(R"("\u0000")", "run.json") == std::string("\0", 1));
}

TEST_CASE("JSON nested 10,000 deep is refused, not a stack overflow", "[base]") {
  REQUIRE_THROWS_WITH(parse_json(std::string(10000, '['), "deep.json"), Catch::Contains("at most 512 levels"));
}

TEST_CASE("JSON may be nested 512 deep", "[base]") {
  CHECK(parse_json(std::string(512, '[') + std::string(512, ']'), "deep.json").is_array());
  CHECK_THROWS_WITH(parse_json(std::string(513, '[') + std::string(513, ']'), "deep.json"),
                    Catch::Contains("at most 512 levels"));
}

TEST_CASE("a list of very many objects is read in one pass, and its values are all there", "[base]") {
  std::string text = "{\"x\": [";  // scanning the list at the end of each object would take minutes
  for (int i = 0; i < 400'000; ++i) text += "{\"n\": " + std::to_string(i) + "},";
  const Json all = parse_json(text + "[true, null, -1, 2.5, \"\"]], \"y\": {}}", "long.json");
  REQUIRE(all.at("x").size() == 400'001);
  CHECK(all.at("x")[399'999].at("n") == 399'999);
  CHECK(all.at("x").back().dump() == "[true,null,-1,2.5,\"\"]");
  CHECK(all.at("y") == Json::object());
}

TEST_CASE("a message about broken JSON has the beginning of what was read, in whole characters", "[base]") {
  std::string letters;
  for (int i = 0; i < 100'000; ++i) letters += "\u00E4";
  try {
    parse_json("{\"text\": \"" + letters, "request");
    FAIL("expected an error");
  } catch (const Error& error) {
    const std::string what = error.what();
    CHECK_THAT(what, Catch::StartsWith("request: not valid JSON: parse error at line 1") &&
                         Catch::Contains("missing closing quote") && Catch::EndsWith("\u00E4\u2026"));
    CHECK(what.size() < 300);
  }
  CHECK_THROWS_WITH(parse_json("{\"" + letters + "\": 1, \"" + letters + "\": 2}", "request"),
                    Catch::StartsWith("request: duplicate key \"\u00E4") && Catch::EndsWith("\u00E4\u2026"));
}

TEST_CASE("a text is shortened to whole characters", "[base]") {
  CHECK(shortened("harbour", 7) == "harbour");
  CHECK(shortened("harbour", 4) == "harb\u2026");
  CHECK(shortened("a\u00E4b", 2) == "a\u2026");
  CHECK(shortened("a\u00E4b", 3) == "a\u00E4\u2026");
  CHECK(shortened("\u00E4\u2026", 4) == "\u00E4\u2026");
}

TEST_CASE("a mistyped word gets its nearest neighbour as suggestion, a strange one none", "[base]") {
  const std::vector<std::string> known = {"learning_rate", "batch_size", "epochs"};
  REQUIRE(suggestion("lerning_rate", known) == " (did you mean learning_rate?)");
  REQUIRE(suggestion("colour", known).empty());
}
