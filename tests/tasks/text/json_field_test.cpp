// Messages about values of JSON files.
#include "tasks/text/json_field.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"

using etc::Json;
using etc::text::JsonField;

namespace {

// The message of the Error that read(field) throws.
template <typename Read>
std::string message_of(const Json& json, Read read) {
  try {
    read(JsonField(json, "p.json: id 7"));
  } catch (const etc::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a JSON field names file, id, path and value when it is not what it should be", "[tasks][text]") {
  const Json json =
      Json::parse(R"({"sp": [["A", 1.5], ["B", true]], "n": 18446744073709551615, "x": 1e308, "z": null})");
  CHECK(message_of(json, [](JsonField f) { f.member("sp").element(0).element(1).integer(); }) ==
        "p.json: id 7: sp[0][1]: expected an integer of at most 64 bits, got 1.5");
  CHECK(message_of(json, [](JsonField f) { f.member("sp").element(1).element(1).string(); }) ==
        "p.json: id 7: sp[1][1]: expected a string, got true");
  CHECK(message_of(json, [](JsonField f) { f.member("answer"); }) ==
        "p.json: id 7: expected a member \"answer\", found none");
  CHECK(message_of(json, [](JsonField f) { f.member("n").integer(); }) ==
        "p.json: id 7: n: expected an integer of at most 64 bits, got 18446744073709551615");
  CHECK(message_of(json, [](JsonField f) { f.member("sp").member("q"); }) ==
        "p.json: id 7: sp: expected an object, got [[\"A\",1.5],[\"B\",true]]");
  CHECK(message_of(json, [](JsonField f) { f.size(); }).find("expected an array, got {") != std::string::npos);
  CHECK(message_of(json, [](JsonField f) { f.member("sp").number(); }).find("a finite number") != std::string::npos);
  CHECK(message_of(json, [](JsonField f) { f.member("n").boolean(); }).find("true or false") != std::string::npos);
}

TEST_CASE("a JSON field reads what is there", "[tasks][text]") {
  const Json json = Json::parse(R"({"a": ["t", -9223372036854775808, 3], "b": true, "z": null})");
  const JsonField field(json, "x");
  CHECK(field.member("a").size() == 3);
  CHECK(field.member("a").element(0).string() == "t");
  CHECK(field.member("a").element(1).integer() == INT64_MIN);
  CHECK(field.member("a").element(2).number() == 3);
  CHECK(field.member("b").boolean());
  CHECK(!field.optional_member("z"));
  CHECK(!field.optional_member("q"));
}

TEST_CASE("a long value is shown by its beginning, in whole characters", "[tasks][text]") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "é";
  const std::string message = message_of(Json(text), [](JsonField f) { f.integer(); });
  CHECK(message.ends_with("é…"));
  CHECK(message.size() < 160);
}
