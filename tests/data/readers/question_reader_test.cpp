// Files in SQuAD's form, cut into one record per question.
#include "data/readers/question_reader.h"

#include "data/readers/json_record.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"

using namespace etc;
using namespace etc::data;

namespace {

struct ReadQuestions {
  std::vector<RecordSlice> slices;
  std::string fault;  // "code: what"
  std::vector<FileNote> notes;
};

ReadQuestions read(const std::string& bytes) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "q.json", bytes);
  ByteStream stream(folder / "q.json");
  QuestionReader reader(stream);
  ReadQuestions outcome;
  try {
    for (RecordSlice slice; reader.next(slice);) outcome.slices.push_back(slice);
    CHECK(!reader.next(outcome.slices.emplace_back()));  // a further call returns the end again
    outcome.slices.pop_back();
  } catch (const InputFault& fault) {
    outcome.fault = fault.code() + ": " + fault.what();
  }
  outcome.notes = reader.notes();
  return outcome;
}

const std::string kFile = R"( {"version": 1.1, "data" : [
 {"title": "a]", "paragraphs": [{"context": "c \" {1", "qas": [{"id": "1"}, {"id": "2", "x": [1, {"y": "]"}]} ]},
   {"qas": [{"id":"3"}], "more": null, "context": "c2"}], "z": -1.5e3},
 {"paragraphs": [ ]}, {"paragraphs": [{"qas": [], "context": ""},{"qas":[ {"id": "4"}]}]} ] , "end": {"a": [true]}}
)";

}  // namespace

TEST_CASE("every question comes with its text, wherever members stand, at its own place", "[data][readers]") {
  for (const std::string& bytes : {kFile, test::gzip(kFile)}) {
    const ReadQuestions outcome = read(bytes);
    CHECK(outcome.fault.empty());
    REQUIRE(outcome.slices.size() == 4);
    CHECK(outcome.slices[0].text == R"({"context":"c \" {1","question":{"id": "1"}})");
    CHECK(outcome.slices[1].text == R"({"context":"c \" {1","question":{"id": "2", "x": [1, {"y": "]"}]}})");
    CHECK(outcome.slices[2].text == R"({"context":"c2","question":{"id":"3"}})");
    CHECK(outcome.slices[3].text == R"({"question":{"id": "4"}})");
    for (std::size_t i = 0; i < outcome.slices.size(); ++i) {
      const RecordSlice& slice = outcome.slices[i];
      CAPTURE(i);
      CHECK(slice.index == static_cast<std::int64_t>(i));
      CHECK(kFile.find(fmt::format("{{\"id\":{}\"{}\"", i == 2 ? "" : " ", i + 1)) ==
            static_cast<std::size_t>(slice.begin.byte_offset));
    }
    CHECK(outcome.slices[2].begin.line == 3);
  }
}

TEST_CASE("articles and paragraphs of another form are given for a task to refuse", "[data][readers]") {
  const ReadQuestions outcome =
      read(R"({"data": [{"title": "t"}, 5, {"paragraphs": [{"context": "c"}, "p", {"context": "d", "qas": [7]}]}]})");
  CHECK(outcome.fault.empty());
  std::vector<std::string> texts;
  for (const RecordSlice& slice : outcome.slices) texts.push_back(slice.text);
  CHECK(texts == std::vector<std::string>{R"({"title": "t"})", "5", R"({"context": "c"})", R"("p")",
                                          R"({"context":"d","question":7})"});
}

TEST_CASE("keys that occur twice around the questions are noted, a second list of articles is a fault",
          "[data][readers]") {
  const ReadQuestions outcome = read(
      "{\"data\": [{\"paragraphs\": []},\n{\"title\": \"t\", \"title\": \"u\", \"paragraphs\": [{\"context\": \"c\", "
      "\"qas\": [{\"id\": \"1\"}], \"qas\": [{\"id\": \"2\", \"id\": \"3\"}]}]}]}");
  CHECK(outcome.fault.empty());
  REQUIRE(outcome.slices.size() == 1);
  RecordSlice question = outcome.slices[0];
  CHECK(parse_record(question).notes.size() == 1);  // the note on the id
  REQUIRE(outcome.notes.size() == 2);
  const std::string article = "the article at byte 30, line 2: ";
  CHECK(outcome.notes[0].code == "duplicate_key");
  CHECK_THAT(outcome.notes[0].message, Catch::StartsWith(article + "title: the key occurs twice"));
  CHECK_THAT(outcome.notes[1].message, Catch::StartsWith(article + "paragraphs[0].qas: the key occurs twice"));
  // The article is returned unchanged, so its notes belong to the record.
  CHECK(read(R"({"data": [{"title": "t", "title": "u"}]})").notes.empty());

  const ReadQuestions twice = read(
      R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1"}]}]}], "v": 2, "data": [{"paragraphs": []}]})");
  CHECK(twice.slices.size() == 1);
  CHECK_THAT(twice.fault, Catch::StartsWith("duplicate_key: byte 77, line 1, column 78: expected one member \"data\""));
}

TEST_CASE("a file without questions has no record", "[data][readers]") {
  CHECK(read(R"({"data": []})").slices.empty());
  CHECK(read("\xEF\xBB\xBF{\"data\": []}").notes.size() == 1);
}

TEST_CASE("a damaged file says where and what", "[data][readers]") {
  CHECK_THAT(read("").fault, Catch::Contains("json_syntax: byte 0") && Catch::Contains("list \"data\" of articles"));
  CHECK_THAT(read("[]").fault, Catch::Contains("got '['"));
  CHECK_THAT(read("{}").fault, Catch::Contains("data_missing"));
  CHECK_THAT(read(R"({"data": 4})").fault, Catch::Contains("data_missing: byte 10"));
  CHECK_THAT(read(R"({"data" [)").fault, Catch::Contains("expected ':'"));
  CHECK_THAT(read(R"({"data": [{} {}]})").fault, Catch::Contains("',' or ']' behind an article, got '{'"));
  CHECK_THAT(read(R"({"data": [{"paragraphs": [}]})").fault, Catch::Contains("not valid JSON"));
  CHECK_THAT(read(R"({"data": [{}], "a")").fault, Catch::Contains("expected ':'"));
  CHECK_THAT(read(R"({"data": []} x)").fault, Catch::Contains("nothing behind the file's object, got 'x'"));
  CHECK_THAT(read("{\"data\": [{\"paragraphs\": \"\xff\"}]}").fault, Catch::Contains("utf8_invalid"));
  for (std::size_t cut = 1; cut + 2 < kFile.size(); cut += 7) {
    CAPTURE(cut);
    CHECK(!read(kFile.substr(0, cut)).fault.empty());
  }
}
