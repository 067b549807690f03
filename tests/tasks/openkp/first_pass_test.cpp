// The first pass over malformed pages of every kind, with whole files through `etc prepare`: damaged pages are not
// candidates, even if their url can still be read, and are reported as they would be without a first pass.
#include "tasks/prepare/first_pass.h"

#include "tasks/openkp/prepare.h"
#include "tasks/openkp/schema.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/tasks/openkp/small_pages.h"

using namespace etc;
using namespace etc::openkp;

namespace {

using Words = std::vector<std::string>;

const Json kOne = {{"Fishing"}}, kTwo = {{"Fishing"}, {"dawn"}};

std::string page(const std::string& url, const Json& phrases) {
  Json record = test::worked_page(test::worked_elements(), phrases);
  record["url"] = url;
  return json_line(record);
}

// The page with `from` in its line replaced.
std::string changed(std::string line, const std::string& from, const std::string& to) {
  const std::size_t at = line.find(from);
  REQUIRE(at != std::string::npos);
  return line.replace(at, from.size(), to);
}

struct Outcome {
  prepare::Counts counts;
  Words urls;  // of the examples
  Words rows;  // of the report of rejected and dropped pages
};

Outcome prepared(const std::string& bytes) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "pages.jsonl", bytes);
  PrepareConfig config;
  config.long_max_length = 16;
  config.global_max_length = 4;
  prepare::RunOptions options;
  options.inputs = {folder / "pages.jsonl"};
  options.output = folder / "out.h5";
  options.report = folder / "out.jsonl";
  options.split = "train";
  Outcome outcome{prepare::run(OpenkpPreparation(config, test::small_vocabulary()), options), {}, {}};
  const data::DatasetReader reader({options.output}, schema());
  for (std::int64_t i = 0; i < reader.size(); ++i) {
    outcome.urls.push_back(std::get<std::string>(reader.read(i).at("id")));
  }
  for (const data::Fault& f : reader.faults()) {
    outcome.rows.push_back(
        fmt::format("{} {} {} {}: {}", f.record_index, data::severity_text(f.severity), f.code, f.field, f.message));
  }
  return outcome;
}

std::string lines(const Words& texts) {
  return fmt::format("{}\n", fmt::join(texts, "\n"));
}

}  // namespace

TEST_CASE("of one url damaged pages are never kept, and said to be what they are", "[tasks][openkp]") {
  const std::string a = page("a", kOne), url = R"("url":"a")";
  const Outcome outcome = prepared(lines({
      a,                                                           // 0
      a.substr(0, a.size() - 1),                                   // 1: broken
      changed(a, url, R"("address":"a")"),                         // 2: no url
      changed(a, url, R"("url":5)"),                               // 3
      changed(a, "Guide Fishing", "Guide \xFF"),                   // 4
      changed(a, url, R"("url":"a","n":1e999)"),                   // 5: nobody reads n
      changed(a, url, R"("url":"a\ud800")"),                       // 6
      changed(a, url, R"("url":"")"),                              // 7
      "[" + a + "]",                                               // 8
      changed(page("a", kTwo), "[{", "["),                         // 9: more phrases, but a damaged VDOM
      changed(page("a", kTwo), "Guide Fishing", "Guide \\ud800"),  // 10
      page("a", kTwo),                                             // 11: the best
      page("a", kTwo),                                             // 12
  }));
  CHECK(outcome.urls == Words{"a"});
  CHECK(outcome.counts.records == 13);
  CHECK(outcome.counts.dropped == 3);
  CHECK(outcome.counts.rejected == 9);
  CHECK(outcome.rows ==
        Words{"0 drop duplicate_url url: record 11 is kept for this url",
              "1 reject json_syntax : byte 1306, line 2, column 653: not valid JSON: unexpected end of input; expected "
              "'}'",
              "2 reject missing_field url: the record has no url",
              "3 reject wrong_type url: expected a string, got number",
              "4 reject utf8_invalid : byte 3227, line 5, column 611: not well-formed UTF-8",
              "5 drop duplicate_url url: record 11 is kept for this url",
              "6 reject bad_character url: the text holds an unpaired surrogate escape",
              "7 reject id_empty url: the url is empty", "8 reject record_not_object : expected an object, got array",
              "9 reject vdom_syntax VDOM: in the string: byte 5, line 1, column 6: not valid JSON: unexpected ':'; "
              "expected ']'",
              "10 reject bad_character text: the text holds an unpaired surrogate escape",
              "10 reject vdom_text_mismatch VDOM[1].text: expected words 4 to 8 of the text, \"\uFFFD blue lake "
              "trout\", got \"Fishing blue lake trout\"",
              "12 drop duplicate_url url: record 11 is kept for this url"});
}

TEST_CASE("a page beside the kept one is a duplicate, whatever would be wrong with its features", "[tasks][openkp]") {
  // Phrases of the text that lie in no element: they count in the choice, but are no labels.
  const Json crossing = parse_json(R"([["trout", "at"]])", "phrases");
  const Json two_crossing = parse_json(R"([["trout", "at"], ["Guide", "Fishing"]])", "phrases");
  const Outcome outcome = prepared(lines({
      page("a", crossing),      // 0
      page("a", kTwo),          // 1: the best
      page("b", two_crossing),  // 2: the best, though without a label
      page("b", crossing),      // 3
      page("b", kOne),          // 4
  }));
  CHECK(outcome.urls == Words{"a"});
  CHECK(outcome.counts.rejected == 1);
  CHECK(outcome.counts.dropped == 3);
  CHECK(outcome.rows ==
        Words{"0 drop duplicate_url url: record 1 is kept for this url",
              "2 reject no_label_located KeyPhrases: no key phrase lies within one of the kept elements",
              "3 drop duplicate_url url: record 2 is kept for this url",
              "4 drop duplicate_url url: record 2 is kept for this url"});
}

TEST_CASE("the url counts as JSON reads it: escapes undone, the last of several members", "[tasks][openkp]") {
  const std::string b = page("b", kOne), url = R"("url":"b")";
  const Outcome outcome = prepared(lines({
      changed(b, url, R"("url":"c","\u0075rl":"b")"),
      changed(page("b", kTwo), url, R"("url":"\u0062")"),
      changed(page("b", kTwo), url, R"("url":"b","\ud800":1)"),
      page("c", kOne),
  }));
  CHECK(outcome.urls == Words{"b", "c"});
  CHECK(outcome.rows == Words{"0 drop duplicate_url url: record 1 is kept for this url",
                              "2 drop duplicate_url url: record 1 is kept for this url"});
}

TEST_CASE("pages in front of a damaged place are chosen among themselves", "[tasks][openkp]") {
  const std::string packed = test::gzip(lines({page("a", kOne), page("b", kOne), page("a", kTwo), page("b", kTwo)}));
  const Outcome whole = prepared(packed);
  CHECK(whole.urls == Words{"a", "b"});
  CHECK(whole.rows == Words{"0 drop duplicate_url url: record 2 is kept for this url",
                            "1 drop duplicate_url url: record 3 is kept for this url"});
  const Outcome cut = prepared(packed.substr(0, packed.size() - 12));
  CHECK(cut.counts.fatal);
  CHECK(cut.counts.codes.at("fatal gzip_truncated") == 1);
  CHECK(cut.urls == Words{"b", "a"});
  CHECK(cut.rows == Words{"0 drop duplicate_url url: record 2 is kept for this url"});
}

TEST_CASE("a second walk is made only for repeated ids", "[tasks][openkp]") {
  const test::TemporaryFolder folder;
  const OpenkpPreparation preparation(PrepareConfig(), nullptr);
  const auto walks = [&](const Words& pages) {
    test::write_file(folder / "pages.jsonl", lines(pages));
    int last = -1;
    const prepare::Choice choice =
        choose_records(preparation, {folder / "pages.jsonl"}, [&](int walk, std::int64_t) { last = walk; });
    CHECK((choice.kept("a") != nullptr) == (last == 1));
    CHECK(choice.kept("b") == nullptr);
    return last + 1;
  };
  CHECK(walks({page("a", kOne), page("b", kOne)}) == 1);
  CHECK(walks({page("a", kOne), page("b", kOne), page("a", kOne)}) == 2);
}
