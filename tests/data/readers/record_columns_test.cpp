// Lists read by columns give the same result as the record's JSON value, and nothing else changes.
#include <optional>

#include "data/readers/json_record.h"
#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::data;

namespace {

const UnreadMembers kUnread{{"html", ""}, {"tokens", "byte"}};
const FlatLists kFlat{{"tokens", {{"text"}, {"at"}, {{"box", 1}}, {"tag"}}}};
const std::string kToken = R"({"text": "a\u00e9", "byte": 7, "at": -1, "box": [0.5], "tag": true})";

std::string record_of(const std::string& tokens) {
  return R"({"id": 5, "tokens": )" + tokens + R"(, "html": "<P>", "more": [{"text": "b", "tag": false}]})";
}

struct Reading {
  JsonRecord record;
  std::string fault;  // empty: none
};

Reading read(const std::string& text, const FlatLists& flat) {
  RecordSlice slice;
  slice.text = text;
  try {
    return {parse_record(slice, kUnread, flat), ""};
  } catch (const InputFault& fault) {
    return {{}, fault.code() + " " + fault.what()};
  }
}

// The rows of a list as the JSON values that parse_record did not build.
Json rows_of(const FlatList& list) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < list.rows; ++i) {
    rows.push_back({{"text", list.texts[0][i]},
                    {"at", list.integers[0][i]},
                    {"box", {list.floats[0][i]}},
                    {"tag", bool(list.flags[0][i])}});
  }
  return rows;
}

std::vector<std::string> words_of(const std::vector<JsonNote>& notes) {
  std::vector<std::string> words;
  for (const JsonNote& note : notes) words.push_back(fmt::format("{} {}", static_cast<int>(note.kind), note.field));
  return words;
}

// Reads a text in both ways and compares all results; returns whether a list was read by columns.
bool by_columns_as_by_values(const std::string& text) {
  CAPTURE(text);
  const Reading values = read(text, {});
  Reading columns = read(text, kFlat);
  CHECK(columns.fault == values.fault);
  CHECK(words_of(columns.record.notes) == words_of(values.record.notes));
  REQUIRE(values.record.columns.empty());
  const bool found = !columns.record.columns.empty();
  for (const auto& [name, list] : columns.record.columns) {
    REQUIRE(columns.record.value.at(name) == Json::array());
    columns.record.value[name] = rows_of(list);
  }
  CHECK(columns.record.value == values.record.value);
  return found;
}

}  // namespace

TEST_CASE("a record's flat lists are read by columns, without their unread members", "[readers]") {
  for (const std::string& tokens : {
           std::string("[]"),
           "[" + kToken + "]",
           "[" + kToken + ", " + kToken + "]",
           std::string(R"([{"tag": false, "box": [1e3], "at": 9223372036854775807, "text": ""}])"),
           std::string(
               R"([{"byte": {"text": 1}, "byte": null, "text": "\u0000", "at": 0, "box": [-0.0], "tag": true}])"),
       }) {
    CHECK(by_columns_as_by_values(record_of(tokens)));
  }
}

TEST_CASE("a list that does not fit its columns is in the value as ever", "[readers]") {
  for (const std::string token : {
           R"({"at": 0, "box": [0.5], "tag": true})",                                   // a member missing
           R"({"text": "a", "at": 0, "box": [0.5], "tag": true, "more": 0})",           // one more
           R"({"text": "a", "text": "b", "at": 0, "box": [0.5], "tag": true})",         // one twice
           R"({"text": 1, "at": 0, "box": [0.5], "tag": true})",                        // each of another type
           R"({"text": "a", "at": 0.5, "box": [0.5], "tag": true})",                    //
           R"({"text": "a", "at": 9223372036854775808, "box": [0.5], "tag": true})",    //
           R"({"text": "a", "at": 0, "box": [1], "tag": true})",                        //
           R"({"text": "a", "at": 0, "box": [0.5], "tag": 1})",                         //
           R"({"text": null, "at": 0, "box": [0.5], "tag": null})",                     //
           R"({"text": "\ud800", "at": 0, "box": [0.5], "tag": true})",                 // half a pair
           R"({"text": "a", "at": 123456789012345678901234, "box": [0.5], "tag": 1})",  // out of range
           "{\"text\": \"\xff\", \"at\": 0, \"box\": [0.5], \"tag\": true}",            // no UTF-8
           R"({"text": "\x", "at": 0, "box": [0.5], "tag": true})",                     // no JSON
           R"([])",
           R"(null)",
       }) {
    CHECK_FALSE(by_columns_as_by_values(record_of("[" + token + "]")));
    CHECK_FALSE(by_columns_as_by_values(record_of("[" + kToken + ", " + token + "]")));
  }
  for (const std::string tokens : {"1", "null", "\"a\"", "{}", "[[" /* cut */}) {
    CHECK_FALSE(by_columns_as_by_values(record_of(tokens)));
  }
}

TEST_CASE("of a list that is there twice the last one counts, in whatever form", "[readers]") {
  const std::string flat = "\"tokens\": [" + kToken + "]", odd = R"("tokens": [{"text": 1}])";
  CHECK(by_columns_as_by_values("{" + flat + ", " + flat + "}"));
  CHECK(by_columns_as_by_values("{" + odd + ", " + flat + "}"));
  CHECK_FALSE(by_columns_as_by_values("{" + flat + ", " + odd + "}"));
  CHECK_FALSE(by_columns_as_by_values("{" + flat + R"(, "tokens": null})"));
}

TEST_CASE("only members of the record itself are read by columns", "[readers]") {
  const std::string member = "{\"tokens\": [" + kToken + "]}";
  CHECK_FALSE(by_columns_as_by_values("[" + member + "]"));
  CHECK_FALSE(by_columns_as_by_values("[[" + kToken + "]]"));
  CHECK_FALSE(by_columns_as_by_values("{\"more\": " + member + "}"));
  CHECK_FALSE(by_columns_as_by_values("{\"\": [" + kToken + "]}"));
}

namespace {

void compare_mutants(std::uint64_t count) {
  const std::string text = record_of("[" + kToken + ", " + kToken + R"(, {"tag": false, "at": 3, "box": [1.5e1], )" +
                                     R"("text": "\ud83d\ude00\\", "byte": "x"}])");
  std::uint64_t columns = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    if (by_columns_as_by_values(test::mutate(text, seed))) ++columns;
  }
  CHECK(columns > 0);
  CHECK(columns < count);
}

}  // namespace

TEST_CASE("mutated records say the same by columns as by values", "[readers]") {
  compare_mutants(1000);
}

TEST_CASE("20,000 mutated records say the same by columns as by values", "[readers][slow]") {
  compare_mutants(20000);
}
