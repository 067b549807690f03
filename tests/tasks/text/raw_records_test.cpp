// Reading records one by one, and the error messages for files that cannot be read.
#include "tasks/text/raw_records.h"

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using etc::data::RecordLayout;
using etc::text::JsonField;

namespace {

std::string message_of(const std::string& bytes, RecordLayout layout) {
  const etc::test::TemporaryFolder folder;
  etc::test::write_file(folder / "r.json", bytes);
  etc::text::IdPlaces ids;
  try {
    etc::text::for_each_record(folder / "r.json", layout,
                               [&](const JsonField& r) { ids.add(r.member("id").string(), r); });
  } catch (const etc::Error& error) {
    const std::string what = error.what();
    return what.substr(what.find("r.json"));
  }
  return "";
}

}  // namespace

TEST_CASE("records are visited in order, and messages name their place", "[tasks][text]") {
  CHECK(message_of(R"([{"id": "a"}, {"id": "b"}])", RecordLayout::array).empty());
  CHECK(message_of("{\"id\": \"a\"}\n\n{\"id\": \"b\"}\n", RecordLayout::lines).empty());
  CHECK(message_of(R"([{"id": "a"}, {"id": 4}])", RecordLayout::array) ==
        "r.json: record 1: id: expected a string, got 4");
  CHECK(message_of("{\"id\": \"a\"}\n{}\n", RecordLayout::lines) ==
        "r.json: line 2: expected a member \"id\", found none");
  const std::string twice = message_of("{\"id\": \"a\"}\n{\"id\": \"b\"}\n{\"id\": \"a\"}\n", RecordLayout::lines);
  CHECK(twice.starts_with("r.json: line 3: id a occurs twice, first at "));
  CHECK(twice.ends_with("r.json: line 1"));
}

TEST_CASE("a file that cannot be read on is an error with the place", "[tasks][text]") {
  CHECK(message_of("{\"id\": \"a\"}\n{\"id\": \"b\n", RecordLayout::lines).find("line 2") != std::string::npos);
  CHECK(message_of("[{\"id\": \"a\"}", RecordLayout::array).starts_with("r.json: byte 12"));
  CHECK(message_of("{\"id\": \"\xff\"}\n", RecordLayout::lines).find("UTF-8") != std::string::npos);
  CHECK(message_of("7", RecordLayout::array).find("expected records, an array of them") != std::string::npos);
}
