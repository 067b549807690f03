#include "data/readers/json_record.h"

#include <algorithm>
#include <optional>

#include "bench/json_pass.h"
#include "data/probe.h"
#include "data/readers/member_text.h"
#include "etc_core/base/memory_ledger.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::data;

namespace {

RecordSlice slice_of(const std::string& text, const std::string& cut_short = "") {
  RecordSlice slice;
  slice.begin = {100, 3, 7};
  slice.text = text;
  slice.cut_short = cut_short;
  return slice;
}

JsonRecord parse(const std::string& text) {
  RecordSlice slice = slice_of(text);
  return parse_record(slice);
}

std::optional<InputFault> fault_of(const std::string& text, const std::string& cut_short = "") {
  RecordSlice slice = slice_of(text, cut_short);
  try {
    parse_record(slice);
  } catch (const InputFault& fault) {
    return fault;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a record's values arrive with their types", "[readers]") {
  const JsonRecord record =
      parse(R"({"s": "\u00e9\n", "n": [1, -2, 2.5, 18446744073709551615, true, null], "o": {"": []}})");
  REQUIRE(record.notes.empty());
  REQUIRE(record.value ==
          Json::parse(R"({"s": "é\n", "n": [1, -2, 2.5, 18446744073709551615, true, null], "o": {"": []}})"));
  REQUIRE(record.begin.line == 3);
  REQUIRE(parse("17").value == 17);
}

TEST_CASE("of duplicate keys the last one is taken and each is noted with its path", "[readers]") {
  const JsonRecord record = parse(R"({"a": 1, "b": [{"c": 1, "c": 2}], "a": 3})");
  REQUIRE(record.value == Json::parse(R"({"a": 3, "b": [{"c": 2}]})"));
  REQUIRE(record.notes.size() == 2);
  REQUIRE(record.notes[0].kind == JsonNote::Kind::duplicate_key);
  REQUIRE(record.notes[0].field == "b[0].c");
  REQUIRE(record.notes[1].field == "a");
}

TEST_CASE("half surrogate pairs are noted with their field and read as U+FFFD", "[readers]") {
  const JsonRecord record =
      parse(R"({"a": "x\ud800y", "b": ["\uDC00", "\ud83d\ude00", "\\ud800"], "c": "\ufffd", "d\udfff": 1})");
  REQUIRE(record.value["a"] == "x\uFFFDy");
  REQUIRE(record.value["b"] == Json({"\uFFFD", "😀", "\\ud800"}));
  std::vector<std::string> fields;
  for (const JsonNote& note : record.notes) {
    REQUIRE(note.kind == JsonNote::Kind::unpaired_surrogate);
    fields.push_back(note.field);
  }
  REQUIRE(fields == std::vector<std::string>{"a", "b[0]", "d\uFFFD"});
}

TEST_CASE("members that nobody reads are not built", "[readers]") {
  RecordSlice slice;
  slice.text = R"({"a": 1, "b": [{"a": 2, "c": 3}, {"c": 4}], "c": {"c": [5]}, "a": 6, "d": [["c"], {"c": 7}]})";
  const JsonRecord record = parse_record(slice, {{"a", ""}, {"b", "c"}, {"d", "e"}});
  REQUIRE(record.value == Json::parse(R"({"b": [{"a": 2}, {}], "c": {"c": [5]}, "d": [["c"], {"c": 7}]})"));
  REQUIRE(record.notes.empty());
}

TEST_CASE("a number out of range makes the record unreadable, not the file", "[readers]") {
  for (const char* text : {R"({"a": 123456789012345678901234567890})", R"({"b": [{"c": 1}], "a": [-1e999], "d": 1})",
                           R"({"b": 1.5, "a": {"b": 9223372036854775807, "c": -9223372036854775809}, "d": 1})"}) {
    CAPTURE(text);
    const JsonRecord record = parse(text);
    REQUIRE(record.value.is_null());
    REQUIRE(record.notes.size() == 1);
    REQUIRE(record.notes[0].kind == JsonNote::Kind::number_out_of_range);
    REQUIRE(record.notes[0].field == "a");
  }
}

TEST_CASE("a number out of range in a member that is not read leaves the record as it is", "[readers]") {
  const UnreadMembers unread({{"b", "c"}}, {"a", "d.e"});
  const auto parsed = [&](const std::string& text) {
    RecordSlice slice = slice_of(text);
    return parse_record(slice, unread);
  };
  const JsonRecord record = parsed(R"({"a": "-1e999\"", "x": 1e309, "y": [{"z": -123456789012345678901}, 1e-400], )"
                                   R"("b": [{"c": 1E+999}], "d": {"f": 99999999999999999999}, "ab": 2e308, "g": 1.5})");
  REQUIRE(record.notes.empty());
  REQUIRE(record.value == Json::parse(R"({"a": "-1e999\"", "x": null, "y": [{"z": null}, 0.0], "b": [{}], )"
                                      R"("d": {"f": null}, "ab": null, "g": 1.5})"));
  for (const auto& [text, field] : {std::pair(R"({"x": 1e999, "a": 1e999})", "a"),
                                    std::pair(R"({"x": 1e999, "a": [1, {"b": 123456789012345678901}]})", "a"),
                                    std::pair(R"({"d": {"e": -1e999, "f": 1}})", "d")}) {
    CAPTURE(text);
    const JsonRecord refused = parsed(text);
    REQUIRE(refused.value.is_null());
    REQUIRE(refused.notes.size() == 1);
    REQUIRE(refused.notes[0].kind == JsonNote::Kind::number_out_of_range);
    REQUIRE(refused.notes[0].field == field);
  }
  // Half a surrogate pair in the same record is noted all the same.
  const JsonRecord both = parsed(R"({"a": "\ud800", "x": 1e999})");
  REQUIRE(both.value == Json::parse(R"({"a": "\ufffd", "x": null})"));
  REQUIRE(both.notes.size() == 1);
  REQUIRE(both.notes[0].kind == JsonNote::Kind::unpaired_surrogate);
  // What is no number stays a fault at its place.
  for (const char* text : {R"({"x": 1e999, "y": 01234567890123456789012})", R"({"x": 1e999, "y": 1e999.5})",
                           R"({"x": 1e999, "y": --1e999})", R"({"x": 1e999, "y": 1e999e})"}) {
    CAPTURE(text);
    const auto fault = fault_of(text);
    REQUIRE(fault);
    REQUIRE(fault->code() == "json_syntax");
    REQUIRE(fault->where().byte_offset > 114);
  }
}

TEST_CASE("what is not JSON or not UTF-8 is a fault with byte, line and column", "[readers]") {
  struct Case {
    std::string text;
    const char* code;
    std::int64_t offset, line, column;
    const char* message;
  };
  for (const Case& c : {
           Case{R"({"a": NaN})", "json_syntax", 106, 3, 13, "invalid literal"},
           Case{R"({"a": -Infinity})", "json_syntax", 107, 3, 14, "invalid number"},
           Case{"{\"a\": 1,\n \"b\" 2}", "json_syntax", 114, 4, 6, "unexpected number literal"},
           Case{R"({"a": 01})", "json_syntax", 107, 3, 14, "unexpected number literal"},
           Case{R"({"a": 'b'})", "json_syntax", 106, 3, 13, "invalid literal"},
           Case{R"({"a": ]})", "json_syntax", 106, 3, 13, "unexpected ']'"},
           Case{R"({"a": "\x"})", "json_syntax", 108, 3, 15, "forbidden character after backslash"},
           Case{"{\"a\": \"b\tc\"}", "json_syntax", 108, 3, 15, "control character"},
           Case{"tru", "json_syntax", 103, 3, 10, "invalid literal"},
           Case{"{\"a\": \"\xc3(\"}", "utf8_invalid", 107, 3, 14, "not well-formed UTF-8"},
           Case{"{\"a\": \"\xed\xa0\x80\"}", "utf8_invalid", 107, 3, 14, "not well-formed UTF-8"},
           Case{std::string("{\"a\": 1\0}", 9), "json_syntax", 107, 3, 14, "unexpected zero byte"},
       }) {
    CAPTURE(c.text);
    const auto fault = fault_of(c.text);
    REQUIRE(fault);
    CAPTURE(fault->what());
    CHECK(fault->code() == c.code);
    CHECK(fault->where().byte_offset == c.offset);
    CHECK(fault->where().line == c.line);
    CHECK(fault->where().column == c.column);
    CHECK_THAT(fault->what(), Catch::Contains(c.message));
  }
}

TEST_CASE("a cut record is a fault at its end, or where its text went wrong before", "[readers]") {
  const auto at_end = fault_of(R"({"a": "b)", "the file ends inside a record");
  REQUIRE(at_end);
  REQUIRE(at_end->where().byte_offset == 108);
  REQUIRE_THAT(at_end->what(), Catch::Contains("the file ends inside a record"));
  const auto before = fault_of(R"({"a": "b, "c": "d"}, {"a": "x"}])", "the file ends inside a record");
  REQUIRE(before);
  REQUIRE(before->where().byte_offset == 111);
  REQUIRE_THAT(before->what(), Catch::Contains("not valid JSON"));
  REQUIRE(fault_of("1", "the file ends inside a record"));  // valid JSON, but the array is not closed
  const auto inside_character = fault_of("{\"a\": \"\xe2\x82", "the file ends inside a record");
  REQUIRE(inside_character);
  REQUIRE(inside_character->code() == "json_syntax");
}

TEST_CASE("a last line without a line end is cut where its JSON is not whole, and any other line is a bad one",
          "[readers]") {
  struct Case {
    std::string text;
    bool cut;
  };
  const std::vector<Case> cases = {{R"({"a": "b)", true},        {R"({"a": "b", )", true},
                                   {R"({"a": [1, 2)", true},     {R"({"a": tru)", true},
                                   {"{\"a\": \"\xe2\x82", true}, {R"({"a": "b" "c": 1})", false},
                                   {R"({"a": 1}})", false},      {"{\"a\": \"\xff\", \"b\": 1}", false}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    for (const bool open_line : {true, false}) {
      RecordSlice slice = slice_of(c.text);
      slice.open_line = open_line;
      CHECK_THROWS_AS(parse_record(slice), InputFault);
      CHECK(slice.cut_short == (open_line && c.cut ? kEndsInsideRecord : ""));
    }
  }
  RecordSlice whole = slice_of(R"({"a": 1})");
  whole.open_line = true;
  CHECK(parse_record(whole).value["a"] == 1);
  RecordSlice large = slice_of(R"({"a": 1e999})");
  large.open_line = true;
  CHECK(parse_record(large).notes.size() == 1);
}

TEST_CASE("a record that memory does not suffice for is no fault of the record", "[readers]") {
#if defined(__SANITIZE_ADDRESS__)
  return test::skip("the sanitizer reserves more than any limit");
#endif
  const test::TemporaryFolder folder;
  test::write_file(folder / "record", "x");
  std::string text = "{\"a\": [7";
  for (int i = 0; i < 1'500'000; ++i) text += ",7";
  RecordSlice slice = slice_of(text + "]}");
  REQUIRE(parse(slice.text).value["a"].size() > 1'000'000);
  std::vector<int> outcomes;  // one for each limit
  for (std::uint64_t megabytes = 1; megabytes <= 512; megabytes *= 2) {
    CAPTURE(megabytes);
    try {
      run_probe("record", folder / "record",
                [&] {
                  parse_record(slice);
                  read_flat_list(slice.text, {});
                  member_text(slice, "b");
                },
                {megabytes << 20, 600, 600});
      outcomes.push_back(1);
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Catch::Contains("needs more than"));  // std::bad_alloc in the child
      outcomes.push_back(0);
    }
  }
  CHECK(std::is_sorted(outcomes.begin(), outcomes.end()));
  CHECK(outcomes.front() == 0);
  CHECK(outcomes.back() == 1);
}

TEST_CASE("nesting 10,000 and 1,000,000 deep is read without a stack to match", "[readers]") {
  for (const std::size_t depth : {std::size_t{10000}, std::size_t{1000000}}) {
    const std::string nested = std::string(depth, '[') + std::string(depth, ']');
    const JsonRecord record = parse(R"({"id": "x", "deep": )" + nested + "}");
    REQUIRE(record.value["id"] == "x");
    REQUIRE(record.value["deep"].is_array());
  }
  // The grammar check, which also keeps its levels on the heap, finds unclosed brackets.
  REQUIRE(fault_of(std::string(1000000, '['), "the file ends inside a record"));
}

TEST_CASE("a record of 100 MB takes a bounded multiple of its size", "[readers]") {
  const std::int64_t before = memory_ledger::process_peak_bytes();
  const std::size_t size = 100u << 20;
  RecordSlice slice = slice_of("");
  slice.text.reserve(size + 100);
  slice.text = "{\"id\": \"x\", \"supports\": [\"";
  slice.text.append(size, 'a');
  slice.text += "\"]}";
  const JsonRecord record = parse_record(slice);
  REQUIRE(record.value["supports"][0].get_ref<const std::string&>().size() == size);
  // The text, the parser's index (an integer for every few bytes) and strings, and our copy.
  REQUIRE(memory_ledger::process_peak_bytes() - before < static_cast<std::int64_t>(9 * size));
}

namespace {

void parse_mutants(std::uint64_t count) {
  const std::string text =
      R"({"id": "WH_train_1", "query": "country x\u00e9", "answer": "a", "candidates": ["a", "b"], "supports": )"
      R"(["He left . \ud83d\ude00 She came .", "No. 5 \"quoted\" text\\"], "annotations": [["follows", 1.5e3]]})";
  int values = 0, faults = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    RecordSlice slice = slice_of(test::mutate(text, seed));
    try {
      parse_record(slice);
      ++values;
    } catch (const InputFault&) {
      ++faults;
    }
  }
  REQUIRE(values > 0);
  REQUIRE(faults > 0);
}

}  // namespace

TEST_CASE("mutated records give a value or a fault, never a crash", "[readers]") {
  parse_mutants(500);
}

TEST_CASE("5,000 mutated records", "[readers][slow]") {
  parse_mutants(5000);
}

TEST_CASE("one call of simdjson counts a file's records and names a file it cannot read", "[readers]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.json", "[{\"id\": 1}, [2], \"three\"]");
  REQUIRE(bench::json_pass(folder / "a.json", RecordLayout::array) == 3);
  test::write_file(folder / "b.json", "[1, 2");
  REQUIRE_THROWS_WITH(bench::json_pass(folder / "b.json", RecordLayout::array), Catch::Contains("b.json: simdjson: "));
  REQUIRE_THROWS_WITH(bench::json_pass(folder / "c.json", RecordLayout::array), Catch::Contains("c.json: simdjson: "));
  test::write_file(folder / "d.jsonl", "{\"a\": 1}\n[2, 3]\n");
  REQUIRE(bench::json_pass(folder / "d.jsonl", RecordLayout::lines) == 2);
  test::write_file(folder / "e.jsonl", "{\"a\": 1}\n[2, 3\n");
  REQUIRE_THROWS_WITH(bench::json_pass(folder / "e.jsonl", RecordLayout::lines),
                      Catch::Contains("e.jsonl: simdjson: "));
}
