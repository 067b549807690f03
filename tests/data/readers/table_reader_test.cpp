// Tables, cut into rows with their header.
#include "data/readers/table_reader.h"

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"

using namespace etc;
using namespace etc::data;

namespace {

using Words = std::vector<std::string>;

struct Outcome {
  std::vector<RecordSlice> slices;
  Words texts;
  std::string fault;
};

Outcome read(const std::string& bytes, TableForm form, bool header) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "t", bytes);
  ByteStream stream(folder / "t");
  TableReader reader(stream, form, [&](std::optional<std::string_view>, const TextPosition&) { return header; });
  Outcome outcome;
  try {
    for (RecordSlice slice; reader.next(slice);) {
      outcome.texts.push_back(slice.text);
      outcome.slices.push_back(std::move(slice));
    }
  } catch (const InputFault& fault) {
    outcome.fault = fault.code();
  }
  return outcome;
}

}  // namespace

TEST_CASE("each row of a table comes with the header, at its line", "[data][readers]") {
  for (const bool packed : {false, true}) {
    const std::string bytes =
        "\xEF\xBB\xBF"
        "a\tb\r\n\"1\t2\"\n\n3\r\t\n4\t5";
    const Outcome outcome = read(packed ? test::gzip(bytes) : bytes, TableForm::tabs, true);
    CHECK(outcome.texts == Words{"a\tb\n\"1\t2\"", "a\tb\n", "a\tb\n3\t", "a\tb\n4\t5"});
    REQUIRE(outcome.slices.size() == 4);
    CHECK(outcome.slices[0].begin.byte_offset == 8);
    CHECK(outcome.slices[3].begin.line == 5);
    CHECK(outcome.slices[3].index == 3);
    CHECK(outcome.slices[3].stands_alone);
  }
}

TEST_CASE("a first row that is no header is a row", "[data][readers]") {
  const Outcome outcome = read("1\t2\n3\t4\n", TableForm::tabs, false);
  CHECK(outcome.texts == Words{"\n1\t2", "\n3\t4"});
  CHECK(header_of(outcome.texts[0]).empty());
  CHECK(row_of(outcome.texts[1]) == "3\t4");
  CHECK(read("", TableForm::tabs, false).texts.empty());
}

TEST_CASE("whoever knows the header is asked about an empty file, too", "[data][readers]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "t", "\xEF\xBB\xBF");  // only a byte-order mark: empty
  ByteStream stream(folder / "t");
  TableReader reader(stream, TableForm::tabs, [](std::optional<std::string_view> first, const TextPosition& place) {
    if (!first) throw InputFault("header_missing", place, "expected a header");
    return true;
  });
  RecordSlice slice;
  CHECK_THROWS_WITH(reader.next(slice), Catch::Contains("expected a header"));
}

TEST_CASE("only LF ends a tab-separated row", "[data][readers]") {
  CHECK(read("a\xE2\x80\xA8"
             "b\x0B"
             "c\x0C"
             "d\xC2\x85"
             "e\n",
             TableForm::tabs, false)
            .texts.size() == 1);
}

TEST_CASE("a comma-separated row may hold commas, line ends and quotes in quotes", "[data][readers]") {
  const Outcome outcome = read("\"a, \"\"b\"\"\nc\",d \"e,\r\nf,\"\",g\r\n\"h\"\r\n", TableForm::commas, false);
  REQUIRE(outcome.texts.size() == 3);
  CHECK(fields_of(row_of(outcome.texts[0]), TableForm::commas) == Words{"a, \"b\"\nc", "d \"e", ""});
  CHECK(fields_of(row_of(outcome.texts[1]), TableForm::commas) == Words{"f", "", "g"});
  CHECK(fields_of(row_of(outcome.texts[2]), TableForm::commas) == Words{"h"});
}

TEST_CASE("a quote that is not closed, or goes on behind its end, is no row", "[data][readers]") {
  CHECK(!fields_of("\"a", TableForm::commas));
  CHECK(!fields_of("\"a\"b,c", TableForm::commas));
  CHECK(fields_of("\"a", TableForm::tabs) == Words{"\"a"});
  CHECK(fields_of("", TableForm::tabs) == Words{""});
  const std::string endless = "\"" + std::string(TableReader::kMaxRowBytes + 4, '\n');
  CHECK(read(endless, TableForm::commas, false).fault == "row_too_long");
}

TEST_CASE("cut gzip data gives the whole rows, then says so", "[data][readers]") {
  std::string bytes;
  for (int i = 0; i < 4000; ++i) bytes += fmt::format("id{}\t{}\n", i, i * 7919 % 10007);
  const std::string packed = test::gzip(bytes);
  const Outcome outcome = read(packed.substr(0, packed.size() / 2), TableForm::tabs, false);
  CHECK(outcome.fault == "gzip_truncated");
  CHECK(!outcome.texts.empty());
}
