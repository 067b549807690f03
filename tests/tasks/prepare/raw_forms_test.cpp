// Raw records that are not JSON go through the same run; only their readers and preparations are different.
#include <algorithm>
#include <sstream>

#include "data/readers/text_blocks.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/tasks/stopped_preparation.h"

using namespace etc;

namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text, char separator) {
  Words parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Takes the bytes up to the line's end, and the line end itself; false at the end of the file.
bool take_line(data::TextBlocks& blocks, std::string& line) {
  line.clear();
  bool done = false;
  while (!done && blocks.available(1) > 0) {
    const char* end = std::find(blocks.begin(), blocks.end(), '\n');
    done = end != blocks.end();
    const auto count = static_cast<std::size_t>(end - blocks.begin());
    line.append(blocks.begin(), count);
    blocks.skip(count + (done ? 1 : 0));
  }
  if (!done && !blocks.fault().empty()) throw data::InputFault("gzip_truncated", blocks.position(), blocks.fault());
  return done || !line.empty();
}

// Tab-separated lines: one record per line, whose ends are not stripped because fields may be empty.
class TabReader : public data::RecordReader {
 public:
  explicit TabReader(data::ByteStream& stream) : blocks_(stream) {}

  bool next(data::RecordSlice& slice) override {
    slice = {};
    slice.begin = blocks_.position();
    if (!take_line(blocks_, slice.text)) return false;
    slice.index = index_++;
    slice.stands_alone = true;
    return true;
  }

 private:
  data::TextBlocks blocks_;
  std::int64_t index_ = 0;
};

// Plain text: documents between empty lines, a sentence on each line.
class DocumentReader : public data::RecordReader {
 public:
  explicit DocumentReader(data::ByteStream& stream) : blocks_(stream) {}

  bool next(data::RecordSlice& slice) override {
    slice = {};
    std::string line;
    for (data::TextPosition place = blocks_.position(); take_line(blocks_, line); place = blocks_.position()) {
      if (line.empty() && slice.text.empty()) continue;
      if (line.empty()) break;
      if (slice.text.empty()) slice.begin = place;
      slice.text += (slice.text.empty() ? "" : "\n") + line;
    }
    if (slice.text.empty()) return false;
    slice.index = index_++;
    return true;
  }

  std::vector<data::FileNote> notes() const override {
    if (index_ != 1) return {};
    return {{"one_document", "the whole file is one document: expected empty lines between documents"}};
  }

 private:
  data::TextBlocks blocks_;
  std::int64_t index_ = 0;
};

// The common part of both preparations: the schema, and the example made of a record.
class PlainPreparation : public prepare::Preparation {
 public:
  const data::Schema& schema() const override {
    using data::FeatureKind, data::StoredType;
    static const data::Schema kSchema{"plain",
                                      {{"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                                       {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                       {"texts", FeatureKind::strings, StoredType::u8, "", {}, {}}}};
    return kSchema;
  }
  const std::string& vocab_sha256() const override {
    static const std::string kNone(64, '0');
    return kNone;
  }
  Json preprocess_config() const override { return Json::object(); }

 protected:
  static prepare::Converted converted(const data::RecordSlice& record, const std::string& id, const Words& texts) {
    prepare::Converted result;
    result.id = id;
    data::Example& example = result.examples.emplace_back();
    example["id"] = id;
    example["record_index"] = record.index;
    example["texts"] = texts;
    return result;
  }
};

// Two fields, id and text, of tab-separated lines; with `chooses`, the longest text of equal ids is kept.
class TabPreparation : public PlainPreparation {
 public:
  explicit TabPreparation(bool chooses = false) : chooses_(chooses) {}

  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override {
    return std::make_unique<TabReader>(stream);
  }
  prepare::Converted convert_record(data::RecordSlice& record) const override {
    const Words fields = split(record.text, '\t');
    if (fields.size() != 2) {
      throw data::InputFault("tsv_fields", record.begin, fmt::format("expected 2 fields, got {}", fields.size()));
    }
    prepare::Converted result = converted(record, fields[0], {fields[1]});
    result.was_candidate = chooses_;
    if (fields[1].empty()) result.faults.reject("text", "text_empty", "the text is empty");
    return result;
  }
  const char* unique_field() const override { return chooses_ ? "id" : nullptr; }
  std::string unique_id(data::RecordSlice& record) const override { return split(record.text, '\t')[0]; }
  std::optional<prepare::Candidate> candidate_of(data::RecordSlice& record) const override {
    const Words fields = split(record.text, '\t');
    if (fields.size() != 2) return std::nullopt;
    return prepare::Candidate{fields[0], std::ssize(fields[1])};
  }

 private:
  bool chooses_;
};

class DocumentPreparation : public PlainPreparation {
 public:
  std::unique_ptr<data::RecordReader> open_records(data::ByteStream& stream) const override {
    return std::make_unique<DocumentReader>(stream);
  }
  prepare::Converted convert_record(data::RecordSlice& record) const override {
    const Words sentences = split(record.text, '\n');
    if (sentences[0] == "unreadable") throw data::InputFault("utf8_invalid", record.begin, "not well-formed UTF-8");
    return converted(record, fmt::format("line {}", record.begin.line), sentences);
  }
};

struct Outcome {
  prepare::Counts counts;
  std::vector<Words> examples;  // id and texts, in the order of the file written
  Words report;                 // "severity code record@byte: message"
};

Outcome prepared(const prepare::Preparation& preparation, const std::string& bytes) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "raw", bytes);
  prepare::RunOptions options;
  options.inputs = {folder / "raw"};
  options.output = folder / "out.h5";
  options.report = folder / "report.jsonl";
  options.split = "train";
  Outcome outcome{prepare::run(preparation, options), {}, {}};
  const data::DatasetReader reader({options.output}, preparation.schema());
  for (std::int64_t i = 0; i < reader.size(); ++i) {
    const data::Example example = reader.read(i);
    outcome.examples.push_back({std::get<std::string>(example.at("id"))});
    const auto& texts = std::get<Words>(example.at("texts"));
    outcome.examples.back().insert(outcome.examples.back().end(), texts.begin(), texts.end());
  }
  std::istringstream lines(read_file(options.report));
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    outcome.report.push_back(fmt::format("{} {} {}@{}: {}", row.at("severity").get<std::string>(),
                                         row.at("code").get<std::string>(), row.at("record").get<int>(),
                                         row.at("byte_offset").get<int>(), row.at("message").get<std::string>()));
  }
  return outcome;
}

}  // namespace

TEST_CASE("tab-separated lines are prepared with their faults at their lines", "[tasks][prepare]") {
  const Outcome outcome = prepared(TabPreparation(), "a\tone \n\tnameless\nbroken\nc\t\na\tagain\nb\ttwo");
  CHECK(outcome.examples == std::vector<Words>{{"a", "one "}, {"", "nameless"}, {"b", "two"}});
  CHECK(outcome.report == Words{"reject tsv_fields 2@17: byte 17, line 3, column 1: expected 2 fields, got 1",
                                "reject text_empty 3@24: the text is empty",
                                "reject duplicate_id 4@27: the id was first seen at record 0, again at record 4"});
  CHECK(outcome.counts.records == 6);
  CHECK(outcome.counts.rejected == 3);
  CHECK(!outcome.counts.fatal);
}

TEST_CASE("the first record that is rejected and the first that is dropped are named with line and reason",
          "[tasks][prepare]") {
  const prepare::Counts none = prepared(TabPreparation(), "a\tone\n").counts;
  CHECK(none.first_rejected.empty());
  CHECK(none.first_dropped.empty());
  prepare::Counts rejected = prepared(TabPreparation(), "a\tone\nb\tone\nc\t\na\tagain\n").counts;
  CHECK(rejected.first_rejected == "raw, line 3: text: text_empty: the text is empty");
  const prepare::Counts dropped = prepared(TabPreparation(true), "a\tone\na\tlonger\nc\t\n").counts;
  CHECK(dropped.first_dropped == "raw, line 1: id: duplicate_id: record 1 is kept for this id");
  CHECK(dropped.first_rejected == "raw, line 3: text: text_empty: the text is empty");
  // Of several inputs the first record counts, even if it comes from a part of an earlier run.
  rejected.add(prepare::counts_of(prepare::json_of(dropped)));
  CHECK(rejected.first_rejected == "raw, line 3: text: text_empty: the text is empty");
  CHECK(rejected.first_dropped == dropped.first_dropped);
}

TEST_CASE("tab-separated lines are written in their order by any number of threads", "[tasks][prepare]") {
  std::string bytes;
  std::vector<Words> expected;
  for (int i = 0; i < 1000; ++i) {
    expected.push_back({fmt::format("id{}", i), std::string(static_cast<std::size_t>(i % 97 + 1), 'x')});
    bytes += expected.back()[0] + "\t" + expected.back()[1] + "\n";
  }
  const int before = thread_count();
  for (const int threads : {1, 4}) {
    set_thread_count(threads);
    CHECK(prepared(TabPreparation(), bytes).examples == expected);
    CHECK(prepared(TabPreparation(), test::gzip(bytes)).examples == expected);
  }
  set_thread_count(before);
}

TEST_CASE("of tab-separated lines with one id the first pass keeps the best", "[tasks][prepare]") {
  const Outcome outcome = prepared(TabPreparation(true), "a\tone\nb\ttwo\na\tlonger\nb\tno\n");
  CHECK(outcome.examples == std::vector<Words>{{"b", "two"}, {"a", "longer"}});
  CHECK(outcome.report == Words{"drop duplicate_id 0@0: record 2 is kept for this id",
                                "drop duplicate_id 3@21: record 1 is kept for this id"});
}

TEST_CASE("of cut gzip data the whole lines are prepared", "[tasks][prepare]") {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += fmt::format("id{}\t{}\n", i, i * 7919 % 10007);
  const std::string packed = test::gzip(bytes);
  const Outcome outcome = prepared(TabPreparation(), packed.substr(0, packed.size() / 2));
  CHECK(outcome.counts.fatal);
  CHECK(outcome.counts.codes.at("fatal gzip_truncated") == 1);
  CHECK(std::ssize(outcome.examples) == outcome.counts.records);
  CHECK(outcome.counts.records > 0);
}

TEST_CASE("plain text is prepared by documents with their sentences", "[tasks][prepare]") {
  const Outcome outcome = prepared(DocumentPreparation(), "\nIt rained.\nNobody came.\n\n\nThe sun shone.\n");
  CHECK(outcome.examples == std::vector<Words>{{"line 2", "It rained.", "Nobody came."}, {"line 6", "The sun shone."}});
  CHECK(outcome.report.empty());
  CHECK(prepared(DocumentPreparation(), "One.\nTwo.").report ==
        Words{"warn one_document 0@0: the whole file is one document: expected empty lines between documents"});
}

TEST_CASE("a record that does not stand alone and cannot be read ends the file", "[tasks][prepare]") {
  const Outcome outcome = prepared(DocumentPreparation(), "One.\n\nunreadable\n\nThree.\n");
  CHECK(outcome.examples == std::vector<Words>{{"line 1", "One."}});
  CHECK(outcome.counts.fatal);
  CHECK(outcome.report == Words{"fatal utf8_invalid 1@6: byte 6, line 3, column 1: not well-formed UTF-8"});
}

TEST_CASE("a strict run ends at a record that was rejected in a finished part, and takes parts without one",
          "[tasks][prepare]") {
  const test::TemporaryFolder folder;
  const TabPreparation preparation;
  test::write_file(folder / "a", "a\tone\nc\t\n");
  test::write_file(folder / "b", "b\ttwo\n");
  prepare::RunOptions options;
  options.inputs = {folder / "a", folder / "b"};
  options.output = folder / "out.h5";
  options.report = folder / "report.jsonl";
  options.split = "train";
  const auto run = [&] { prepare::run(preparation, options); };
  REQUIRE(test::stopped_parts(options.output, options.report, ".h5", run).size() == 1);
  options.strict = true;
  CHECK_THROWS_WITH(run(),
                    "prepare: a, line 2: text: text_empty: the text is empty (without --strict it is reported "
                    "and left out)");
  CHECK_FALSE(std::filesystem::exists(options.output));
  options.strict = false;
  run();
  CHECK(std::filesystem::exists(options.output));
  test::write_file(folder / "a", "a\tone\n");
  REQUIRE(test::stopped_parts(options.output, options.report, ".h5", run).size() == 1);
  options.strict = true;
  run();
}

TEST_CASE("a damaged part of an earlier run is prepared again, to equal bytes", "[tasks][prepare]") {
  const test::TemporaryFolder folder;
  const TabPreparation preparation;
  std::string bytes;
  for (int i = 0; i < 500; ++i) bytes += fmt::format("id{}\t{}\n", i, i * 7919 % 10007);
  test::write_file(folder / "a", bytes + "c\t\n");
  test::write_file(folder / "b", "id3\tagain\nb\ttwo\n");
  prepare::RunOptions options;
  options.inputs = {folder / "a", folder / "b"};
  options.output = folder / "out.h5";
  options.report = folder / "report.jsonl";
  options.split = "train";
  const auto run = [&] { prepare::run(preparation, options); };
  run();
  const std::string whole = read_file(options.output), report = read_file(options.report);
  log::also_to_file(folder / "log");
  for (const char* ending : {".h5", ".rejects.jsonl", ".ids.jsonl"}) {
    CAPTURE(ending);
    std::filesystem::remove(options.output);
    test::write_file(folder / "log", "");
    log::also_to_file(folder / "log");
    const auto parts = test::stopped_parts(options.output, options.report, ending, run);
    REQUIRE(parts.size() == 1);
    std::string part = read_file(parts[0]);
    part.replace(part.size() / 2, 4, "XXXX");
    test::write_file(parts[0], part);
    run();
    CHECK(read_file(options.output) == whole);
    CHECK(read_file(options.report) == report);
    CHECK_THAT(read_file(folder / "log"),
               Catch::Contains("its input is prepared again") && !Catch::Contains("is finished from an earlier run"));
    CHECK_FALSE(std::filesystem::exists(options.output.string() + ".parts"));
  }
}
