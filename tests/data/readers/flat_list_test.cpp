#include "data/readers/flat_list.h"

#include "tests/support/catch.h"

using namespace etc::data;

namespace {

const FlatMembers kMembers{{"text"}, {"start", "end"}, {{"box", 2}}};

}  // namespace

TEST_CASE("a list of equal objects is read by columns, in any order of members", "[readers]") {
  const auto list = read_flat_list(
      R"([{"text": "a\u00e9", "start": 0, "end": -1, "box": [1.5, 2e3]}, {"box": [0.0, -0.5], "end": 2, "start": 1, "text": ""}])",
      kMembers);
  REQUIRE(list);
  CHECK(list->rows == 2);
  CHECK(list->texts == std::vector<std::vector<std::string>>{{"a\u00e9", ""}});
  CHECK(list->integers == std::vector<std::vector<std::int64_t>>{{0, 1}, {-1, 2}});
  CHECK(list->floats == std::vector<std::vector<double>>{{1.5, 2000, 0, -0.5}});
  CHECK(read_flat_list("[]", kMembers)->rows == 0);
}

TEST_CASE("true and false are a column of flags", "[readers]") {
  const FlatMembers members{{}, {}, {}, {"html"}};
  const auto list = read_flat_list(R"([{"html": true}, {"html": false}])", members);
  REQUIRE(list);
  CHECK(list->flags == std::vector<std::vector<bool>>{{true, false}});
  CHECK_FALSE(read_flat_list(R"([{"html": true}, {"html": 0}])", members));
  CHECK_FALSE(read_flat_list(R"([{"html": true, "html": true}])", members));
}

TEST_CASE("a list with anything else in it is left to the reader of any JSON", "[readers]") {
  const std::string sound = R"({"text": "a", "start": 0, "end": 1, "box": [1.5, 2.0]})";
  REQUIRE(read_flat_list("[" + sound + "]", kMembers));
  for (const std::string text : {
           R"({"text": "a", "start": 0, "end": 1})",                                       // a member missing
           R"({"text": "a", "start": 0, "end": 1, "box": [1.5, 2.0], "more": 0})",         // one more
           R"({"text": "a", "text": "a", "start": 0, "end": 1, "box": [1.5, 2.0]})",       // one twice
           R"({"text": "a", "text": "a", "start": 0, "box": [1.5, 2.0]})",                 // for another
           R"({"text": 1, "start": 0, "end": 1, "box": [1.5, 2.0]})",                      // another type
           R"({"text": "a", "start": 0.0, "end": 1, "box": [1.5, 2.0]})",                  // no integer
           R"({"text": "a", "start": 0, "end": 9223372036854775808, "box": [1.5, 2.0]})",  // too large
           R"({"text": "a", "start": 0, "end": 1, "box": [1.5, 2]})",                      // no float
           R"({"text": "a", "start": 0, "end": 1, "box": [1.5]})",                         // too few
           R"({"text": "a", "start": 0, "end": 1, "box": [1.5, 2.0, 3.0]})",               // too many
           R"({"text": "\ud800", "start": 0, "end": 1, "box": [1.5, 2.0]})",               // half a pair
           "{\"text\": \"\xff\", \"start\": 0, \"end\": 1, \"box\": [1.5, 2.0]}",          // no UTF-8
           R"([])",
           R"(1)",
           R"({"text")",
       }) {
    CAPTURE(text);
    CHECK_FALSE(read_flat_list("[" + text + "]", kMembers));
    CHECK_FALSE(read_flat_list("[" + sound + ", " + text + "]", kMembers));
  }
  CHECK_FALSE(read_flat_list(sound, kMembers));
  CHECK_FALSE(read_flat_list("", kMembers));
}
