// member_text returns the same text as the whole record's value, or nothing.
#include "data/readers/member_text.h"

#include "data/readers/json_record.h"
#include "tests/support/catch.h"

using namespace etc;
using data::member_text;

namespace {

data::RecordSlice whole_slice(const std::string& text) {
  data::RecordSlice slice;
  slice.text = text;
  return slice;
}

std::optional<std::string> id_of(const std::string& text) {
  data::RecordSlice slice = whole_slice(text);
  return member_text(slice, "id");
}

}  // namespace

TEST_CASE("a member's text is found wherever it stands, its escapes undone", "[data][readers]") {
  for (const char* text : {R"({"id": "a"})", R"({"x": [{"id": "b"}, "\"id\": \"c\""], "y": {"id": 1}, "id": "a"})",
                           R"({"\u0069d": "\u0061", "z": null})", R"({"id": "b", "id": "a"})"}) {
    CAPTURE(text);
    CHECK(id_of(text) == "a");
    data::RecordSlice slice = whole_slice(text);
    CHECK(data::parse_record(slice).value.at("id") == "a");
  }
  CHECK(id_of(R"({"id": ""})") == "");
  CHECK(id_of("{\"id\": \"\\u00e9\xC3\xA9\\ud83d\\ude00\"}") == "\xC3\xA9\xC3\xA9\xF0\x9F\x98\x80");
}

TEST_CASE("nothing is found where the member is missing, no string, or before the text breaks", "[data][readers]") {
  for (const char* text :
       {"{}", R"({"x": "id"})", R"({"id": 1})", R"({"id": "a", "id": null})", R"(["id", "a"])", R"("id")", "", "{",
        R"({"id")", R"({"id": "a)", R"({"id": "\ud800"})", "{\"id\": \"\xFF\"}"}) {
    CAPTURE(text);
    CHECK(id_of(text) == std::nullopt);
  }
}

TEST_CASE("other members' values are stepped over, whatever they hold", "[data][readers]") {
  CHECK(id_of(R"({"x": 1e999, "y": "\ud800", "id": "a"})") == "a");
  CHECK(id_of("{\"id\": \"a\", \"deep\": " + std::string(3000, '[') + std::string(3000, ']') + "}") == "a");
}

TEST_CASE("the slice is as it was and can be parsed", "[data][readers]") {
  data::RecordSlice slice = whole_slice(R"({"id": "a", "x": "\ud800"})");
  const std::string before = slice.text;
  CHECK(member_text(slice, "id") == "a");
  CHECK(slice.text == before);
  CHECK(data::parse_record(slice).notes.size() == 1);
}
