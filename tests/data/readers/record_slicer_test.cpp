#include "data/readers/record_slicer.h"

#include <optional>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"

using namespace etc;
using namespace etc::data;

namespace {

struct SlicedRecords {
  std::vector<RecordSlice> slices;
  std::optional<InputFault> fault;
  bool byte_order_mark = false;
  std::int64_t empty_lines = 0;

  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const RecordSlice& slice : slices) result.push_back(slice.text);
    return result;
  }
};

SlicedRecords slice_all(const std::string& bytes, RecordLayout layout = RecordLayout::array,
                        std::size_t max_record_bytes = RecordSlicer::kMaxRecordBytes) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "raw", bytes);
  ByteStream stream(folder / "raw");
  RecordSlicer slicer(stream, layout, max_record_bytes);
  SlicedRecords outcome;
  try {
    RecordSlice slice;
    while (slicer.next(slice)) outcome.slices.push_back(slice);
  } catch (const InputFault& fault) {
    outcome.fault = fault;
  }
  outcome.byte_order_mark = slicer.byte_order_mark();
  outcome.empty_lines = slicer.empty_lines();
  return outcome;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("an array is cut into its records whatever stands in their strings", "[readers]") {
  const SlicedRecords outcome = slice_all(" [ {\"a\": \"]}\\\"{[\"} ,\n\t[1, {\"b\": []}] , \"x,]\", -1.5e3,null ]\n ");
  REQUIRE(!outcome.fault);
  REQUIRE(outcome.texts() == Texts{"{\"a\": \"]}\\\"{[\"}", "[1, {\"b\": []}]", "\"x,]\"", "-1.5e3", "null"});
  REQUIRE(outcome.slices[1].index == 1);
  REQUIRE(outcome.slices[1].begin.byte_offset == 22);
  REQUIRE(outcome.slices[1].begin.line == 2);
  REQUIRE(outcome.slices[1].begin.column == 2);
  REQUIRE(slice_all("[]").slices.empty());
  REQUIRE(!slice_all("[ ]").fault);
}

TEST_CASE("lines are records, blank ones are none", "[readers]") {
  const SlicedRecords outcome = slice_all("{\"a\": 1}\r\n\n  [2]  \n3", RecordLayout::lines);
  REQUIRE(!outcome.fault);
  REQUIRE(outcome.texts() == Texts{"{\"a\": 1}", "[2]", "3"});
  REQUIRE(outcome.slices[2].begin.line == 4);
  REQUIRE(outcome.slices[2].cut_short.empty());
  REQUIRE(outcome.empty_lines == 1);
  REQUIRE(slice_all("", RecordLayout::lines).slices.empty());
  REQUIRE(slice_all("1\n2\n", RecordLayout::lines).empty_lines == 0);
  REQUIRE(slice_all("\n1\n\n \n2\n\n", RecordLayout::lines).empty_lines == 4);
}

TEST_CASE("the first bytes show how records are set apart, whatever is expected", "[readers]") {
  const Texts two = {"{\"a\": 1}", "{\"b\": \"}\"}"};
  for (const RecordLayout layout : {RecordLayout::array, RecordLayout::lines}) {
    CAPTURE(static_cast<int>(layout));
    for (const char* text :
         {"[{\"a\": 1}, {\"b\": \"}\"}]", "{\"a\": 1}\n{\"b\": \"}\"}\n", " {\"a\": 1} \r\n\n{\"b\": \"}\"}"}) {
      const SlicedRecords outcome = slice_all(text, layout);
      CAPTURE(text);
      REQUIRE(!outcome.fault);
      CHECK(outcome.texts() == two);
      CHECK(outcome.slices[1].stands_alone == (*text != '['));
    }
    const SlicedRecords objects = slice_all("{\n \"a\": {\"c\": 1}\n}\n{\n\"b\": 2}{\"d\": 3}\n", layout);
    REQUIRE(!objects.fault);
    CHECK(objects.texts() == Texts{"{\n \"a\": {\"c\": 1}\n}", "{\n\"b\": 2}", "{\"d\": 3}"});
    CHECK(!objects.slices[0].stands_alone);
    CHECK(slice_all("{\"a\": 1}", layout).texts() == Texts{"{\"a\": 1}"});
    CHECK(slice_all("{\n}, {}", layout).fault->code() == "json_syntax");
    CHECK(!slice_all("{\n\"a\": 1", layout).slices.at(0).cut_short.empty());
  }
  CHECK(slice_all("{\"a\": 1,\n  \"b\": [\n{}]}\n{}", RecordLayout::lines).texts() ==
        Texts{"{\"a\": 1,\n  \"b\": [\n{}]}", "{}"});
  // If lines are expected, a line with an incomplete record is a fault of this record alone.
  const SlicedRecords broken = slice_all("{\"a\": \n{\"b\": 2}\n", RecordLayout::lines);
  CHECK(broken.texts() == Texts{"{\"a\":", "{\"b\": 2}"});
  CHECK(slice_all("\n\n{\"a\": 1}\n\n{}\n", RecordLayout::lines).empty_lines == 3);
}

TEST_CASE("a damaged first line costs itself alone, where an array is expected as well", "[readers]") {
  const Texts good = {"{\"b\": 2}", "{\"c\": \"}\"}"};
  for (const RecordLayout layout : {RecordLayout::array, RecordLayout::lines}) {
    CAPTURE(static_cast<int>(layout));
    for (const std::string damaged : {"{\"a\": \"x y", "{\"a", "{\"a\": [1", "{\"a\": [{\"b\": 2}",
                                      "{\"a\":", "{\"a\": [", "{\"a: 1}", "{", "{\"a\": [1,"}) {
      CAPTURE(damaged);
      const SlicedRecords outcome = slice_all(damaged + "\n" + good[0] + "\n" + good[1] + "\n", layout);
      REQUIRE(!outcome.fault);
      CHECK(outcome.texts() == Texts{damaged, good[0], good[1]});
      CHECK(outcome.slices[0].cut_short.empty());
      CHECK(outcome.slices[0].stands_alone);
    }
  }
}

TEST_CASE("objects over several lines are read however their lines begin", "[readers]") {
  for (const std::string first : {"{\"a\":\n1}", "{\"a\": [\n{\"b\": 2}\n]}", "{\"a\": [\n{\"b\": 2},\n{}]}",
                                  "{\"a\"\n: 1}", "{\"a\":\n{\"b\": 2}\n, \"c\": 3}", "{\"a\": [1,\n{\"b\": 2}\n]}",
                                  "{\n\n \"a\": 1}", "{} {\"a\": 1}\n{\"b\":\n2}"}) {
    CAPTURE(first);
    const SlicedRecords outcome = slice_all(first + "\n{\"z\": 4}\n");
    REQUIRE(!outcome.fault);
    REQUIRE(outcome.slices.size() >= 2);
    CHECK(outcome.slices.back().text == "{\"z\": 4}");
    CHECK(outcome.slices.front().text == (first.starts_with("{}") ? "{}" : first));
    CHECK(outcome.slices.back().cut_short.empty());
  }
}

TEST_CASE("of lines in cut gzip data the whole ones are delivered", "[readers]") {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "{\"a\": " + std::to_string(i * 7919 % 10007) + "}\n";
  const std::string packed = test::gzip(text);
  const SlicedRecords outcome = slice_all(packed.substr(0, packed.size() / 2), RecordLayout::lines);
  REQUIRE(outcome.fault);
  REQUIRE(outcome.fault->code() == "gzip_truncated");
  REQUIRE_THAT(outcome.fault->what(), Catch::Contains("gzip data ends early"));
  REQUIRE(outcome.slices.size() > 100);
  REQUIRE(outcome.slices.size() < 2000);
  for (const RecordSlice& slice : outcome.slices) {
    REQUIRE(slice.text == "{\"a\": " + std::to_string(slice.index * 7919 % 10007) + "}");
  }
}

TEST_CASE("records longer than the reader's block come whole, plain and packed", "[readers]") {
  std::string text = "[";
  for (int i = 0; i < 5; ++i)
    text += (i > 0 ? "," : "") + ("{\"a\":\"" + std::string(700000 + 300000 * i, 'x') + "\"}");
  text += "]";
  for (const std::string& bytes : {text, test::gzip(text)}) {
    const SlicedRecords outcome = slice_all(bytes);
    REQUIRE(!outcome.fault);
    REQUIRE(outcome.slices.size() == 5);
    REQUIRE(outcome.slices[4].text.size() == 1900008);
  }
}

TEST_CASE("what cannot stand around records is a fault with its place, after the records before it", "[readers]") {
  struct Case {
    const char* bytes;
    std::size_t records;
    const char* code;
    std::int64_t offset;
    const char* message;
  };
  for (const Case& c : {
           Case{"", 0, "json_syntax", 0, "the input is empty"},
           Case{" \n ", 0, "json_syntax", 3, "line 2, column 2: the file ends"},
           Case{"\"data\"", 0, "top_level_not_array", 0, "expected records, an array of them"},
           Case{"17", 0, "top_level_not_array", 0, "expected records, an array of them"},
           Case{"{\n}17", 1, "json_syntax", 3, "expected a record, got '1'"},
           Case{"id,query", 0, "json_syntax", 0, "expected a JSON array, got 'i'"},
           Case{"[{}{}]", 1, "json_syntax", 3, "expected ',' or ']' after a record, got '{'"},
           Case{"[{},]", 1, "json_syntax", 4, "expected a record, got ']'"},
           Case{"[,{}]", 0, "json_syntax", 1, "expected a record, got ','"},
           Case{"[{},", 1, "json_syntax", 4, "the file ends: expected a record"},
           Case{"[{}", 1, "json_syntax", 3, "the file ends: expected ',' or ']'"},
           Case{"[{}]\n[{}]", 1, "json_syntax", 5, "line 2, column 1: expected nothing behind the array, got '['"},
           Case{"[{}]\xff", 1, "utf8_invalid", 4, "not well-formed UTF-8"},
           Case{"\xff\xfe[\0{\0", 0, "utf8_invalid", 0, "not well-formed UTF-8"},
       }) {
    CAPTURE(c.bytes);
    const SlicedRecords outcome = slice_all(c.bytes);
    REQUIRE(outcome.slices.size() == c.records);
    REQUIRE(outcome.fault);
    REQUIRE(outcome.fault->code() == c.code);
    REQUIRE(outcome.fault->where().byte_offset == c.offset);
    REQUIRE_THAT(outcome.fault->what(), Catch::Contains(c.message));
  }
}

TEST_CASE("a record that the file's end or the size limit cuts is delivered as such and is the last", "[readers]") {
  const SlicedRecords cut = slice_all("[{}, {\"a\": \"b");
  REQUIRE(cut.texts() == Texts{"{}", "{\"a\": \"b"});
  REQUIRE_THAT(cut.slices[1].cut_short, Catch::Contains("the file ends inside a record"));

  const std::string packed = test::gzip("[{}, {\"a\": \"" + std::string(100000, 'b') + "\"}]");
  const SlicedRecords gzip_cut = slice_all(packed.substr(0, packed.size() - 20));
  REQUIRE(gzip_cut.slices.size() == 2);
  REQUIRE_THAT(gzip_cut.slices[1].cut_short, Catch::Contains("gzip data ends early"));

  const SlicedRecords large =
      slice_all("[{\"a\": \"" + std::string(3 << 20, 'x') + "\"}]", RecordLayout::array, 1 << 20);
  REQUIRE(large.slices.size() == 1);
  REQUIRE(large.slices[0].text.size() <= (2u << 20));
  REQUIRE_THAT(large.slices[0].cut_short, Catch::Contains("longer than 1048576 bytes"));
}

TEST_CASE("a byte-order mark is passed over and remembered", "[readers]") {
  const SlicedRecords outcome = slice_all("\xEF\xBB\xBF[1]");
  REQUIRE(!outcome.fault);
  REQUIRE(outcome.byte_order_mark);
  REQUIRE(outcome.slices[0].begin.byte_offset == 4);
  REQUIRE(outcome.slices[0].begin.column == 2);
  REQUIRE(!slice_all("[1]").byte_order_mark);
}
