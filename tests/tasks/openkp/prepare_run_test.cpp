// Whole files through `etc prepare`: one page per url over several files, reports of the others, and the same bytes
// after an interruption.
#include "etc_core/base/error.h"
#include "tasks/openkp/prepare.h"
#include "tasks/openkp/schema.h"
#include "tasks/prepare/parts.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/openkp/small_pages.h"

using namespace etc;
using namespace etc::openkp;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

Json page_record(const std::string& url, const Json& phrases) {
  Json record = test::worked_page(test::worked_elements(), phrases);
  record["url"] = url;
  return record;
}

std::string lines_of(const std::vector<Json>& records) {
  std::string text;
  for (const Json& record : records) text += json_line(record) + "\n";
  return text;
}

const Json kOnePhrase = {{"Fishing"}}, kTwoPhrases = {{"Fishing"}, {"dawn"}}, kAbsent = {{"nowhere"}};

// Two files: the best page of url a is in the second, that of b in the first; the first page of c is damaged; only d
// has no phrase in its text.
struct Files {
  test::TemporaryFolder folder;
  PrepareConfig config;

  Files() {
    Json broken = page_record("c", kTwoPhrases);
    broken["VDOM"] = "[{";
    config.long_max_length = 16;
    config.global_max_length = 4;
    test::write_file(folder / "one.jsonl", lines_of({page_record("a", kOnePhrase), page_record("b", kTwoPhrases),
                                                     broken, page_record("b", kTwoPhrases)}));
    test::write_file(folder / "two.jsonl", lines_of({page_record("a", kTwoPhrases), page_record("b", kOnePhrase),
                                                     page_record("c", kOnePhrase), page_record("d", kAbsent)}));
  }

  prepare::RunOptions options(const std::string& name) const {
    prepare::RunOptions o;
    o.inputs = {folder / "one.jsonl", folder / "two.jsonl"};
    o.output = folder / (name + ".h5");
    o.report = folder / (name + ".jsonl");
    o.split = "train";
    return o;
  }

  prepare::Counts run(const prepare::RunOptions& o) const {
    return prepare::run(OpenkpPreparation(config, test::small_vocabulary()), o);
  }

  Words urls(const std::string& name) const {
    const data::DatasetReader reader({folder / (name + ".h5")}, schema());
    Words result;
    for (std::int64_t i = 0; i < reader.size(); ++i) {
      result.push_back(std::get<std::string>(reader.read(i).at("id")));
    }
    return result;
  }
};

}  // namespace

TEST_CASE("of the pages with one url in all files the one with most valid phrases is kept", "[tasks][openkp]") {
  const Files files;
  const prepare::Counts counts = files.run(files.options("out"));
  CHECK(counts.records == 8);
  CHECK(counts.examples == 3);
  CHECK(counts.dropped == 3);
  CHECK(counts.rejected == 2);
  CHECK(files.urls("out") == Words{"b", "a", "c"});
  Words rows;
  std::vector<Words> phrases;
  for (const data::Fault& f : data::DatasetReader({files.folder / "out.h5"}, schema()).faults()) {
    rows.push_back(fmt::format("{} {} {} {} {} {}", f.file, f.record_index, f.id, data::severity_text(f.severity),
                               f.code, f.message));
    phrases.push_back(std::get<Words>(f.details.at("key_phrases")));
  }
  CHECK(rows == Words{"one.jsonl 0 a drop duplicate_url record 0 of two.jsonl is kept for this url",
                      "one.jsonl 2 c reject vdom_syntax in the string: byte 2, line 1, column 3: not valid JSON: "
                      "unexpected end of input; expected string literal",
                      "one.jsonl 3 b drop duplicate_url record 1 is kept for this url",
                      "two.jsonl 1 b drop duplicate_url record 1 of one.jsonl is kept for this url",
                      "two.jsonl 3 d reject key_phrase_none no key phrase is in the text"});
  // A rejected page counts in an evaluation, so its phrases are kept with it.
  CHECK(phrases.at(1) == Words{"dawn", "fishing"});
}

TEST_CASE("without the choice the first page of a url is taken and the others are rejected", "[tasks][openkp]") {
  Files files;
  files.config.dedup = false;
  const prepare::Counts counts = files.run(files.options("out"));
  CHECK(files.urls("out") == Words{"a", "b"});
  CHECK(counts.codes.at("reject duplicate_id") == 4);
}

TEST_CASE("a run that goes on chooses as one that was never stopped", "[tasks][openkp]") {
  const Files files;
  test::write_file(files.folder / "one.jsonl", lines_of({page_record("a", kOnePhrase), page_record("b", kTwoPhrases)}));
  files.run(files.options("whole"));
  const prepare::RunOptions options = files.options("resumed");
  // The run ends with an error in the second file.
  prepare::RunOptions strict = options;
  strict.strict = true;
  CHECK_THROWS_AS(files.run(strict), Error);
  CHECK(!fs::exists(options.output));
  CHECK(fs::exists(options.output.string() + ".parts"));
  files.run(options);
  CHECK(read_file(options.output) == read_file(files.folder / "whole.h5"));
  CHECK(read_file(options.report) == read_file(files.folder / "whole.jsonl"));
  CHECK(!fs::exists(options.output.string() + ".parts"));
}

TEST_CASE("a finished part does not fit other files behind it, since they decide what is kept", "[tasks][openkp]") {
  const Files files;
  test::write_file(files.folder / "one.jsonl", lines_of({page_record("a", kOnePhrase), page_record("b", kTwoPhrases)}));
  prepare::RunOptions options = files.options("out");
  options.strict = true;
  CHECK_THROWS_AS(files.run(options), Error);
  test::write_file(files.folder / "two.jsonl", lines_of({page_record("e", kOnePhrase)}));
  options.strict = false;
  files.run(options);
  CHECK(files.urls("out") == Words{"a", "b", "e"});
}

TEST_CASE("of unlabelled pages with one url the first is kept", "[tasks][openkp]") {
  Files files;
  files.config.labels_required = false;
  test::write_file(files.folder / "one.jsonl", lines_of({page_record("a", nullptr), page_record("b", nullptr)}));
  test::write_file(files.folder / "two.jsonl", lines_of({page_record("a", nullptr), page_record("c", nullptr)}));
  prepare::RunOptions options = files.options("out");
  options.split = "test";
  options.labelled = false;
  CHECK(files.run(options).dropped == 1);
  CHECK(files.urls("out") == Words{"a", "b", "c"});
}
