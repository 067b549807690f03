// Rows of GLUE files, good, bad and damaged.
#include <fmt/format.h>

#include "tasks/glue/row.h"

#include "tasks/glue/feed.h"
#include "tasks/glue/prepare.h"
#include "tasks/prepare/file_pass.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"
#include "tests/support/small_config.h"
#include "tests/tasks/small_tokenizer.h"

using namespace etc;
using namespace etc::glue;

namespace {

using Words = std::vector<std::string>;

struct Outcome {
  std::vector<Row> rows;
  Words faults;  // "severity code: message"
};

Outcome read(const std::string& bytes, const RowForm& form) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "rows.tsv", bytes);
  data::ByteStream stream(folder / "rows.tsv");
  Outcome outcome;
  try {
    const auto reader = open_rows(stream, form);
    for (data::RecordSlice record; reader->next(record);) {
      prepare::FaultList faults;
      const Row row = read_row(record, form, faults);
      for (const data::Fault& fault : faults.rows()) {
        outcome.faults.push_back(
            fmt::format("{} {}: {}", data::severity_text(fault.severity), fault.code, fault.message));
      }
      if (faults.rows().empty()) outcome.rows.push_back(row);
    }
  } catch (const data::InputFault& fault) {
    outcome.faults.push_back(fault.code() + ": " + fault.what());
  }
  return outcome;
}

const std::string kRteRows = "index\tsentence1\tsentence2\tlabel\n";

RowForm form_of(DataSet set, bool labels_required = true) {
  return {set, data::TableForm::tabs, labels_required};
}

std::unique_ptr<GluePreparation> preparation_of(DataSet set, Layout layout, bool labels_required) {
  PrepareConfig config;
  config.data_set = set;
  config.layout = layout;
  config.seq_len = 8;
  config.labels_required = labels_required;
  return std::make_unique<GluePreparation>(
      config, test::tokenizer_of("[PAD]\n[UNK]\n[CLS]\n[SEP]\n" + test::vocabulary_entries({"a", "b", "c"})));
}

// Passes over a damaged file; returns how many rows were taken.
std::int64_t pass_over(const prepare::Preparation& preparation, const std::filesystem::path& path, DataSet set) {
  std::int64_t taken = 0, next = 0;
  prepare::PassCallbacks callbacks;
  callbacks.progress = [](std::int64_t) {};
  callbacks.record = [&](prepare::PassRecord&& record) {
    CHECK(record.index == next++);
    for (const data::Fault& fault : record.converted.faults.rows()) {
      CHECK(!fault.code.empty());
      CHECK(fault.message.starts_with("line "));
    }
    for (const data::Example& example : record.converted.examples) {
      check_example(example, test::small_config({.vocabulary = 16}), set, "mutant");
      ++taken;
    }
  };
  const prepare::PassEnd end = pass_over_file(preparation, path, callbacks);
  if (end.fault) CHECK(std::string(end.fault->what()).starts_with("byte "));
  return taken;
}

void run_row_mutants(std::uint64_t count) {
  struct Form {
    DataSet set;
    Layout layout;
    std::string text;
  };
  std::string stsb = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n";
  for (int i = 0; i < 3; ++i) stsb += fmt::format("{}\tg\tf\ty\to\tn\tn\ta b\tc \"b\t{}.5\n", i, i);
  const std::vector<Form> forms = {
      {DataSet::cola, Layout::tsv, "x\t1\t\ta b c\ny\t0\t*\t\"c\nz\t1\t\t\xC3\xA9 b\n"},
      {DataSet::rte, Layout::tsv, kRteRows + "0\ta b\tc\tentailment\n1\t\tb\tnot_entailment\r\n2\ta\t\tentailment\n"},
      {DataSet::stsb, Layout::tsv, stsb},
      {DataSet::stsb, Layout::csv, "a b,b c,5.0\r\n\"a, \"\"b\"\"\",\"c\n\",0.25\r\nc,c,1\r\n"}};
  std::vector<std::unique_ptr<GluePreparation>> preparations;  // of each form, with and without labels
  for (const bool labels_required : {true, false}) {
    for (const Form& form : forms) preparations.push_back(preparation_of(form.set, form.layout, labels_required));
  }
  const test::TemporaryFolder folder;
  std::int64_t taken = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    const Form& form = forms[seed % forms.size()];
    const bool packed = seed / forms.size() % 8 == 7;
    test::write_file(folder / "mutant.tsv", test::mutate(packed ? test::gzip(form.text) : form.text, seed));
    taken += pass_over(*preparations[seed % preparations.size()], folder / "mutant.tsv", form.set);
  }
  CHECK(taken > 0);
}

}  // namespace

TEST_CASE("the columns of a row follow from the header's names", "[glue]") {
  const Outcome dev = read("sentence\tlabel\na b \t1\n", form_of(DataSet::sst2));
  REQUIRE(dev.rows.size() == 1);
  CHECK(dev.rows[0].text_a == "a b ");
  CHECK(dev.rows[0].label == 1);
  CHECK(dev.rows[0].id == "1");
  const Outcome test = read("index\tsentence\n0\ta b\n", form_of(DataSet::sst2, false));
  REQUIRE(test.rows.size() == 1);
  CHECK(test.rows[0].text_a == "a b");
  CHECK(test.rows[0].label == -1);
  const Outcome ax = read("index\tsentence1\tsentence2\n7\ta\tb\n", form_of(DataSet::ax, false));
  REQUIRE(ax.rows.size() == 1);
  CHECK(ax.rows[0].id == "7");
}

TEST_CASE("a record of a request names its texts as the columns do, and is prepared as a row", "[glue]") {
  const auto prepared = [](const GluePreparation& preparation, const char* json) {
    data::RecordSlice slice;
    slice.text = preparation.text_of_json(json, "record 1");
    slice.stands_alone = true;
    const prepare::Converted converted = preparation.convert_record(slice);
    CAPTURE(json);
    REQUIRE(converted.faults.rows().empty());
    return std::get<std::vector<std::int64_t>>(converted.examples.at(0).at("token_ids"));
  };
  const auto one = preparation_of(DataSet::cola, Layout::tsv, false),
             two = preparation_of(DataSet::rte, Layout::tsv, false);
  const auto raw = preparation_of(DataSet::stsb, Layout::csv, false);
  const auto a_b = prepared(*one, R"({"sentence": "a b"})");
  CHECK(a_b.size() == 4);
  CHECK(prepared(*one, R"({"id": "x", "sentence": "a\t\nb", "label": 7})") == a_b);
  const auto pair = prepared(*two, R"({"sentence1": "a b", "sentence2": "c"})");
  CHECK(pair.size() == 6);
  CHECK(prepared(*raw, R"({"sentence1": "a b", "sentence2": "c"})") == pair);
  CHECK(prepared(*raw, R"({"sentence1": "a, \"b\"", "sentence2": "c"})").size() > pair.size());
  const auto refused = [](const GluePreparation& preparation, const char* json, const char* message) {
    CHECK_THROWS_WITH(preparation.text_of_json(json, "record 1"), Catch::Contains(message));
  };
  refused(*one, "{}", "record 1: expected an object with the texts of cola, {\"sentence\": …}, got {}");
  refused(*two, R"({"sentence1": "a"})", "{\"sentence1\": …, \"sentence2\": …}");
  refused(*two, R"({"sentence1": "a", "sentence2": 1})", "record 1: sentence2: expected a string, got 1");
  refused(*one, "\"text\"", "expected an object");
  refused(*one, "{", "record 1");

  data::RecordSlice longer;  // seq_len is 8
  longer.text = one->text_of_json(R"({"sentence": "a b c a b c a"})", "record 1");
  const prepare::Converted cut = one->convert_record(longer);
  CHECK(cut.faults.rows().empty());
  REQUIRE(cut.faults.quiet_rows().size() == 1);
  CHECK(cut.faults.quiet_rows()[0].code == "truncated");
  CHECK_THAT(cut.faults.quiet_rows()[0].message, Catch::Contains("7 pieces, 6 are kept"));

  data::RecordSlice other;  // a header of another data set
  other.text = "index\tquestion\n0\ta";
  CHECK(one->convert_record(other).faults.rejected());
}

TEST_CASE("a missing or unexpected header is shown", "[glue]") {
  CHECK(read("0\ta\tb\tentailment\n", form_of(DataSet::rte)).faults ==
        Words{"header_unexpected: byte 0, line 1, column 1: expected a header with the columns sentence1, sentence2, "
              "label (--split test for files without labels), got \"0\ta\tb\tentailment\""});
  CHECK_THAT(read("index\tsentence1\tsentence2\n0\ta\tb\n", form_of(DataSet::rte)).faults.at(0),
             Catch::Contains("header_unexpected") && Catch::Contains("label"));
  CHECK_THAT(read("index\tsentence\n0\ta\n", form_of(DataSet::cola)).faults.at(0),
             Catch::Contains("header_unexpected"));
}

TEST_CASE("an empty file has no header, which is told of where there must be one", "[glue]") {
  const std::string found =
      "header_unexpected: byte 0, line 1, column 1: expected a header with the columns sentence1, ";
  CHECK(read("", form_of(DataSet::rte)).faults ==
        Words{found + "sentence2, label (--split test for files without labels), got nothing: the file is empty"});
  CHECK(read("", form_of(DataSet::rte, false)).faults == Words{found + "sentence2, got nothing: the file is empty"});
  CHECK(read("", form_of(DataSet::cola)).faults.empty());
  CHECK(read("", {DataSet::stsb, data::TableForm::commas, true}).faults.empty());
}

TEST_CASE("short rows, unknown labels and odd scores are refused with their line", "[glue]") {
  CHECK(read(kRteRows + "0\ta\tb\tentailment\n1\ta\n", form_of(DataSet::rte)).faults ==
        Words{"reject row_short: line 3: expected at least 4 columns, got 2: \"1\ta\""});
  CHECK(read(kRteRows + "0\ta\tb\tyes\n", form_of(DataSet::rte)).faults ==
        Words{"reject label_unknown: line 2: expected one of entailment, not_entailment, got \"yes\""});
  CHECK(read(kRteRows + "0\ta\tb\tyes\n", form_of(DataSet::rte, false)).faults.empty());
  const RowForm raw{DataSet::stsb, data::TableForm::commas, true};
  const Outcome scores = read("a,b,5.5\na,b,x\na,b,nan\na,b,+-1\na,b,+\na,b,1 2\na,b,\na,b,-0\na,b,5\n", raw);
  CHECK(scores.faults.size() == 7);
  CHECK(scores.rows.size() == 2);
  CHECK(read("a,b,5.5\n", raw).faults ==
        Words{"reject score_range: line 1: expected a number from 0 to 5, got \"5.5\""});
  CHECK_THAT(read("a,b\n", raw).faults.at(0), Catch::Contains("expected 3 columns, got 2"));
  CHECK_THAT(read("\"a\"x,b,1\n", raw).faults.at(0), Catch::Contains("csv_quote"));
  CHECK_THAT(read(kRteRows + "0\t\xff\tb\tentailment\n", form_of(DataSet::rte)).faults.at(0),
             Catch::Contains("utf8_invalid: line 2"));
}

TEST_CASE("scores are read as by Python: blanks around them and a plus sign are allowed", "[glue]") {
  const Outcome outcome =
      read("a,b,2.5\na,b,+2.5\na,b, 2.5 \na,b,2.5\t\na,b,25e-1\n", {DataSet::stsb, data::TableForm::commas, true});
  CHECK(outcome.faults.empty());
  REQUIRE(outcome.rows.size() == 5);
  for (const Row& row : outcome.rows) CHECK(row.score == 2.5);
}

TEST_CASE("QQP's short rows are left out and counted", "[glue]") {
  const Outcome outcome = read("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\ta\n\n4\t5\t6\ta\tb\t1\n",
                               form_of(DataSet::qqp));
  CHECK(outcome.rows.size() == 1);
  REQUIRE(outcome.faults.size() == 2);
  CHECK_THAT(outcome.faults[1], Catch::Contains("drop row_short: line 3"));
}

TEST_CASE("an empty sentence is CLS and SEP", "[glue]") {
  const auto preparation = preparation_of(DataSet::sst2, Layout::tsv, true);
  data::RecordSlice record;
  record.text = "sentence\tlabel\n\t1";
  const auto converted = preparation->convert_record(record);
  CHECK(std::get<std::vector<std::int64_t>>(converted.examples.at(0).at("token_ids")) ==
        std::vector<std::int64_t>{2, 3});
}

TEST_CASE("rows of another data set than the model's are refused", "[glue]") {
  const auto preparation = preparation_of(DataSet::sst2, Layout::tsv, true);
  data::RecordSlice record;
  record.text = "sentence\tlabel\na\t1";
  const auto converted = preparation->convert_record(record);
  CHECK_THROWS_WITH(
      check_example(converted.examples.at(0), test::small_config({.vocabulary = 16}), DataSet::rte, "f.h5"),
      "feed: f.h5: the rows are of data set sst-2, the model's task.data_set is rte (both are set by --data-set)");
}

TEST_CASE("the raw release's form is STS-B's alone", "[glue]") {
  Json settings = prepare_settings().defaults();
  settings["layout"] = "csv";
  CHECK_THROWS_WITH(make_preparation(settings, "none", prepare::Labels::required),
                    Catch::Contains("layout: csv is the raw release of sts-b"));
}

TEST_CASE("pairs with a byte-level vocabulary need room for CLS and three separators", "[glue]") {
  const test::TemporaryFolder folder;
  test::small_byte_bpe(folder.path());
  const auto make = [&](const char* data_set, std::int64_t seq_len) {
    Json settings = prepare_settings().defaults();
    settings.update({{"data_set", data_set}, {"seq_len", seq_len}});
    return make_preparation(settings, folder / "vocab.json", prepare::Labels::required);
  };
  CHECK_THROWS_WITH(make("rte", 3),
                    "etc prepare: seq_len: expected at least 4 for rte, whose rows are pairs (with this vocabulary CLS "
                    "and 3 separators), got 3");
  data::RecordSlice record;
  record.text = kRteRows + "0\tthe in\tthe\tentailment";
  const auto shortest = make("rte", 4)->convert_record(record);
  CHECK(std::get<std::vector<std::int64_t>>(shortest.examples.at(0).at("token_ids")).size() == 2);
  CHECK_NOTHROW(make("sst-2", 3));
}

TEST_CASE("damaged tables give faults or valid rows", "[glue]") {
  run_row_mutants(200);
}

TEST_CASE("many more damaged tables give faults or valid rows", "[glue][slow]") {
  run_row_mutants(5000);
}
