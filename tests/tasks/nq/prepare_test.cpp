// The worked example of the specification, the faults of bad records and files, and the choice of windows.
#include "tasks/nq/prepare.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "tasks/nq/schema.h"
#include "tasks/nq/windows.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/tasks/nq/small_records.h"
#include "tests/tasks/raw_records.h"

using namespace etc;
using namespace etc::nq;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

Json default_settings() {
  return prepare_settings().defaults();
}

// Windows of 16 long tokens as in task-nq 2.9; more settings in `given`.
PrepareConfig config(const Json& given = Json::object(), prepare::Labels labels = prepare::Labels::required) {
  Json settings = default_settings();
  settings.update({{"seq_len", 16}, {"global_seq_len", 10}, {"stride", 6}, {"question_len", 2}});
  settings.update(given);
  PrepareConfig config = read_prepare_config(settings, labels);
  resolve_special_ids(config, *test::small_nq_tokenizer());
  return config;
}

prepare::Converted converted(const Json& record, const PrepareConfig& c = config()) {
  return NqPreparation(c, test::small_nq_tokenizer()).convert(test::raw_record(json_line(record)));
}

// The worked record after a change.
template <typename Change>
Json changed(const Change& change) {
  Json record = test::worked_nq_record();
  change(record);
  return record;
}

Words rows(const Json& record, const PrepareConfig& c = config()) {
  return test::fault_words(converted(record, c).faults);
}

const Numbers& list(const data::Example& example, const char* feature) {
  return std::get<Numbers>(example.at(feature));
}

std::int64_t scalar(const data::Example& example, const char* feature) {
  return std::get<std::int64_t>(example.at(feature));
}

// sa_start, sa_end, la_start, la_end, answer_type, la_global
Numbers labels(const data::Example& example) {
  Numbers values;
  for (const char* name : {"sa_start", "sa_end", "la_start", "la_end", "answer_type", "la_global"}) {
    values.push_back(scalar(example, name));
  }
  return values;
}

const Words kUnmapped = {"warn label_unmapped annotations[0]"};

}  // namespace

TEST_CASE("the worked example is cut into the windows of the specification", "[tasks][nq]") {
  const auto tokenizer = test::small_nq_tokenizer();
  const auto ids = [&](const Words& pieces) {
    Numbers result;
    for (const std::string& piece : pieces) result.push_back(tokenizer->piece_id(piece));
    return result;
  };
  const prepare::Converted result = converted(test::worked_nq_record());
  CHECK(test::fault_words(result.faults) == Words{"warn question_truncated question_text"});
  CHECK(result.id == "-4711000000000000123");
  REQUIRE(result.examples.size() == 2);
  const data::Example &first = result.examples[0], &second = result.examples[1];

  const std::string open = "[unused102]", close = "[unused103]";
  CHECK(list(first, "token_ids") == ids({"[CLS]", "which", "fish", "[SEP]", open, "blue", "lake", "is", "de", "##ep",
                                         close, open, open, "tr", "##out", "[SEP]"}));
  CHECK(list(first, "candidate_ids") == Numbers{-1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, -1});
  CHECK(list(first, "token_pos") == Numbers{-1, -1, -1, -1, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 11, -1});
  CHECK(list(first, "sentence_ids") == Numbers{0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 6});
  Numbers globals = ids({"[CLS]"});
  globals.insert(globals.end(), {35, 35, 35, 1, 1, 0});
  CHECK(list(first, "global_token_ids") == globals);
  CHECK(list(first, "global_type_id") == Numbers{1, 2, 2, 2, 0, 0, 0});
  CHECK(list(first, "global_candidate_ids") == Numbers{-1, -1, -1, -1, 0, 1, -1});
  CHECK(list(first, "global_token_pos_start") == Numbers{0, 0, 0, 0, 3, 9, 0});
  CHECK(list(first, "global_token_pos_end") == Numbers{0, 0, 0, 0, 8, 16, 0});
  CHECK(labels(first) == Numbers{13, 0, 11, 0, 4, 5});
  CHECK(list(first, "question_ids") == ids({"which", "fish", "live", "in", "blue", "lake"}));
  CHECK(std::get<std::string>(first.at("id")) == "-4711000000000000123#0");
  CHECK(scalar(first, "unique_ids") == -4711000000000000123);
  CHECK(scalar(first, "is_last_window") == 0);

  CHECK(list(second, "token_ids") == ids({"[CLS]", "which", "fish", "[SEP]", close, open, open, "tr", "##out", close,
                                          open, "pike", close, close, "[SEP]"}));
  CHECK(list(second, "token_pos") == Numbers{-1, -1, -1, -1, 8, 9, 10, 11, 11, 12, 13, 14, 15, 16, -1});
  CHECK(list(second, "sentence_ids") == Numbers{0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6});
  CHECK(labels(second) == Numbers{7, 11, 5, 13, 4, 5});
  CHECK(scalar(second, "window_index") == 1);
  CHECK(scalar(second, "window_start") == 6);
  CHECK(scalar(second, "is_last_window") == 1);
}

TEST_CASE("the variants of the worked example", "[tasks][nq]") {
  SECTION("yes stays yes in a window without the paragraph's end") {
    const auto result = converted(changed([](Json& r) {
      r["annotations"][0].update({{"yes_no_answer", "YES"}, {"short_answers", Json::array()}});
      r["annotations"][0]["long_answer"].update(r["long_answer_candidates"][0]);
    }));
    REQUIRE(result.examples.size() == 2);
    CHECK(labels(result.examples[0]) == Numbers{0, 0, 4, 10, 1, 4});
    CHECK(labels(result.examples[1]) == Numbers{0, 0, 0, 4, 1, 0});
  }
  SECTION("no answer") {
    const auto result = converted(changed([](Json& r) {
      r["annotations"][0]["short_answers"] = Json::array();
      r["annotations"][0]["long_answer"] = {
          {"start_token", -1}, {"end_token", -1}, {"start_byte", -1}, {"end_byte", -1}, {"candidate_index", -1}};
    }));
    REQUIRE(result.examples.size() == 2);
    for (const auto& example : result.examples) CHECK(labels(example) == Numbers(6, 0));
  }
  SECTION("fewer global tokens than candidates") {
    const auto result = converted(test::worked_nq_record(), config({{"global_seq_len", 6}}));
    CHECK(list(result.examples[0], "sentence_ids") == Numbers{0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5});
    CHECK(list(result.examples[1], "sentence_ids") == Numbers{0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5});
    CHECK(test::fault_words(result.faults) == Words{"warn question_truncated question_text"});
    const auto full = converted(test::worked_nq_record(), config({{"global_seq_len", 5}, {"question_len", 2}}));
    CHECK(test::fault_words(full.faults) ==
          Words{"warn question_truncated question_text", "warn global_overflow long_answer_candidates"});
  }
  SECTION("no top-level candidate") {
    const auto result = converted(changed([](Json& r) {
                                    for (Json& c : r["long_answer_candidates"]) c["top_level"] = false;
                                  }),
                                  config({{"seq_len", 8}}));
    REQUIRE(result.examples.size() == 1);
    CHECK(list(result.examples[0], "token_ids").size() == 5);
    CHECK(list(result.examples[0], "sentence_ids") == Numbers{0, 1, 2, 3, 3});
    CHECK(list(result.examples[0], "global_token_ids").size() == 4);
    CHECK(test::fault_words(result.faults) == Words{"warn no_top_level long_answer_candidates",
                                                    "warn question_truncated question_text",
                                                    "warn label_unmapped annotations[0]"});
  }
  SECTION("fixed blocks") {
    const auto result = converted(test::worked_nq_record(),
                                  config({{"fixed_blocks", true}, {"fixed_block_size", 5}, {"global_seq_len", 2}}));
    CHECK(list(result.examples[0], "global_token_ids") == Numbers{1, 1});
    CHECK(list(result.examples[0], "sentence_ids") == Numbers{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3});
    CHECK(scalar(result.examples[0], "la_global") == 2);
    CHECK_FALSE(result.examples[0].contains("global_candidate_ids"));
  }
}

TEST_CASE("the simplified form gives the original's windows", "[tasks][nq]") {
  const PrepareConfig simplified = config({{"input_form", "simplified"}});
  Json record = test::simplified_nq_record(test::worked_nq_record());
  const auto original = converted(test::worked_nq_record());
  auto result = converted(record, simplified);
  REQUIRE(result.examples == original.examples);
  // The simplified form has no byte offsets.
  CHECK(list(*original.gold, "long_start_token") == Numbers{9});
  const std::int64_t end_byte = test::worked_nq_record()["annotations"][0]["long_answer"]["end_byte"];
  CHECK(list(*original.gold, "long_end_byte") == Numbers{end_byte});
  CHECK(list(*result.gold, "long_end_byte") == Numbers{-1});
  CHECK(list(*result.gold, "short_start_token") == Numbers{11, 14});
  CHECK(list(*result.gold, "short_count") == Numbers{2});
  // Published test records have a string as id and no annotations.
  record["example_id"] = "-9223372036854775808";
  record.erase("annotations");
  result = converted(record, simplified);
  CHECK(result.id == "-9223372036854775808");
  CHECK(labels(result.examples[0]) == Numbers{0, 0, 0, 0, -1, 0});
  CHECK(test::fault_words(result.faults)[0] == "warn annotation_count annotations");
  // White space other than U+0020 is part of a token.
  record["document_text"] = "a\u00a0b\tc  d";
  record["long_answer_candidates"] = Json::array();
  prepare::FaultList faults;
  const data::JsonRecord raw = test::raw_record(json_line(record));
  const Record read = read_record(raw, simplified, faults);
  REQUIRE(read.tokens.size() == 3);
  CHECK(read.tokens[0].text == "a\u00a0b\tc");
  CHECK(read.tokens[1].text.empty());
  // Tags have letters after < or </.
  for (const auto& [text, html] : {std::pair("<P>", true),
                                   {"</P>", true},
                                   {"<P", false},
                                   {"<>", false},
                                   {"</>", false},
                                   {"<3>", false},
                                   {"<Th_colspan=\"2\">", true},
                                   {"< P>", false},
                                   {"<a>b", false}}) {
    CAPTURE(text);
    record["document_text"] = text;
    const data::JsonRecord one = test::raw_record(json_line(record));
    const bool flag = read_record(one, simplified, faults).tokens[0].html;
    CHECK(flag == (html && std::string(text).find(' ') == std::string::npos));
  }
}

TEST_CASE("every fault of a record has its code and field", "[tasks][nq]") {
  struct Case {
    std::string pointer;
    Json value;  // null: the member is removed
    Words rows;
    bool train = true;
  };
  const Words question = {"warn question_truncated question_text"};
  const auto with_question = [&](Words words) {
    words.insert(words.end(), question.begin(), question.end());
    return words;
  };
  const Json none = {{"start_token", -1}, {"end_token", -1}};
  for (const Case& c : std::vector<Case>{
           {"/example_id", nullptr, {"reject missing_field example_id"}},
           {"/example_id", 1.5, {"reject id_range example_id"}},
           {"/example_id", 9223372036854775808u, {"reject id_range example_id"}},
           {"/example_id", "17", {"reject wrong_type example_id"}},
           {"/question_text", nullptr, {"reject missing_field question_text"}},
           {"/question_text", 7, {"reject wrong_type question_text"}},
           {"/question_text", " \t", {"warn question_empty question_text"}},
           {"/document_tokens", nullptr, {"reject missing_field document_tokens"}},
           {"/document_tokens", "x", {"reject wrong_type document_tokens"}},
           {"/document_tokens/3", 7, {"reject wrong_type document_tokens[3]"}},
           {"/document_tokens/3/token", nullptr, {"reject missing_field document_tokens[3].token"}},
           {"/document_tokens/3/token", 7, {"reject wrong_type document_tokens[3].token"}},
           {"/document_tokens/3/html_token", "false", {"reject wrong_type document_tokens[3].html_token"}},
           {"/document_tokens/3/html_token", nullptr, {"reject missing_field document_tokens[3].html_token"}},
           {"/long_answer_candidates", nullptr, {"reject missing_field long_answer_candidates"}},
           {"/long_answer_candidates/1", 3, {"reject wrong_type long_answer_candidates[1]"}},
           {"/long_answer_candidates/1/end_token", 2.5, {"reject wrong_type long_answer_candidates[1].end_token"}},
           {"/long_answer_candidates/1/top_level", 1, {"reject wrong_type long_answer_candidates[1].top_level"}},
           {"/long_answer_candidates/1/top_level",
            nullptr,
            {"reject missing_field long_answer_candidates[1].top_level"}},
           {"/long_answer_candidates/1/end_token", 18, {"reject candidate_range long_answer_candidates[1]"}},
           {"/long_answer_candidates/1/end_token", 9, {"reject candidate_range long_answer_candidates[1]"}},
           {"/long_answer_candidates/1/start_token",
            -1,
            {"reject candidate_range long_answer_candidates[1]", "warn candidate_overlap long_answer_candidates"}},
           {"/long_answer_candidates/1/start_token", 8,
            with_question({"warn candidate_overlap long_answer_candidates"})},
           {"/annotations", nullptr, {"reject missing_field annotations"}},
           {"/annotations", Json::array(), with_question({"warn annotation_count annotations"})},
           {"/annotations/0", 1, {"reject wrong_type annotations[0]"}},
           {"/annotations/0/long_answer", nullptr, {"reject missing_field annotations[0].long_answer"}},
           {"/annotations/0/long_answer/end_token",
            nullptr,
            {"reject missing_field annotations[0].long_answer.end_token"}},
           {"/annotations/0/long_answer/end_byte", "x", {"reject wrong_type annotations[0].long_answer.end_byte"}},
           {"/annotations/0/short_answers", 1, {"reject wrong_type annotations[0].short_answers"}},
           {"/annotations/0/short_answers/1/end_token", -1,
            with_question({"warn span_inconsistent annotations[0].short_answers[1]"})},
           {"/annotations/0/short_answers/1/end_token",
            14,
            {"reject span_inconsistent annotations[0].short_answers[1]", "warn annotation_count annotations"},
            false},
           {"/annotations/0/short_answers/1/start_byte", -1,
            with_question({"warn span_inconsistent annotations[0].short_answers[1]"})},
           {"/annotations/0/long_answer/end_token", 18,
            with_question({"warn span_inconsistent annotations[0].long_answer",
                           "warn short_outside_long annotations[0].short_answers[0]",
                           "warn short_outside_long annotations[0].short_answers[1]"})},
           {"/annotations/0/short_answers/0/start_token", 8,
            with_question({"warn short_outside_long annotations[0].short_answers[0]"})},
           {"/annotations/0/yes_no_answer", "maybe", {"reject yes_no_value annotations[0].yes_no_answer"}},
           {"/annotations/0/yes_no_answer", 0, {"reject wrong_type annotations[0].yes_no_answer"}},
           {"/annotations/0/yes_no_answer", "no",
            with_question({"warn yes_no_value annotations[0].yes_no_answer", "warn yes_no_with_short annotations[0]"})},
       }) {
    CAPTURE(c.pointer, json_line(c.value));
    Json record = test::worked_nq_record();
    const Json::json_pointer place(c.pointer);
    if (c.value.is_null()) {
      record[place.parent_pointer()].erase(place.back());
    } else {
      record[place] = c.value;
    }
    CHECK(rows(record, config({{"is_train", c.train}})) == c.rows);
  }
}

TEST_CASE("odd records are taken as the specification says", "[tasks][nq]") {
  const auto swap_shorts = [](Json& r) {
    auto& shorts = r["annotations"][0]["short_answers"];
    std::swap(shorts[0], shorts[1]);
  };
  SECTION("short answers in disorder span from the first start to the last end") {
    const auto result = converted(changed(swap_shorts));
    CHECK(test::fault_words(result.faults)[0] == "warn short_unsorted annotations[0].short_answers");
    CHECK(labels(result.examples[1]) == Numbers{7, 11, 5, 13, 4, 5});
    const auto reference = converted(changed(swap_shorts), config({{"parity", "reference"}}));
    CHECK(labels(reference.examples[1]) == Numbers{11, 8, 5, 13, 4, 5});
  }
  SECTION("in training, a document with an inconsistent span has no answer") {
    const auto break_short = [](Json& r) { r["annotations"][0]["short_answers"][1]["end_token"] = -1; };
    const auto break_all_shorts = [](Json& r) {
      for (Json& span : r["annotations"][0]["short_answers"]) span["end_token"] = -1;
    };
    const auto break_long = [](Json& r) { r["annotations"][0]["long_answer"]["end_token"] = 18; };
    const auto labels_with = [&](const auto& change, const char* parity) {
      return labels(converted(changed(change), config({{"is_train", true}, {"parity", parity}})).examples.at(1));
    };
    const Numbers none = {0, 0, 0, 0, 0, 0};
    CHECK(labels_with(break_short, "repaired") == none);
    CHECK(labels_with(break_all_shorts, "repaired") == none);
    CHECK(labels_with(break_long, "repaired") == none);
    // The reference's labels of such a span are 0; the other spans keep theirs.
    CHECK(labels_with(break_all_shorts, "reference") == Numbers{0, 0, 5, 13, 0, 5});
  }
  SECTION("yes in lower case counts, but not for the reference's label") {
    const Json record = changed([](Json& r) {
      r["annotations"][0].update({{"yes_no_answer", "yes"}, {"short_answers", Json::array()}});
    });
    CHECK(scalar(converted(record).examples[0], "answer_type") == 1);
    const auto reference = converted(record, config({{"parity", "reference"}}));
    CHECK(scalar(reference.examples[0], "answer_type") == 3);
    CHECK(list(*reference.gold, "yes_no") == Numbers{1});
  }
  SECTION("an answer whose tokens have no piece is nowhere") {
    const auto result = converted(changed([](Json& r) { r["document_tokens"][14]["token"] = "\u200b"; }));
    CHECK(labels(result.examples[1]) == Numbers{7, 0, 5, 12, 4, 5});
    CHECK(test::fault_words(result.faults).back() == kUnmapped[0]);
  }
  SECTION("a question without text") {
    const auto result = converted(changed([](Json& r) { r["question_text"] = ""; }));
    CHECK(list(result.examples[0], "global_token_ids").size() == 5);
    CHECK(list(result.examples[0], "question_ids").empty());
  }
  SECTION("the other form of record is named") {
    const auto faults = converted(test::simplified_nq_record(test::worked_nq_record())).faults;
    REQUIRE(faults.rejected());
    CHECK_THAT(faults.rows()[0].message, Catch::Contains("--input-form simplified"));
    const auto reverse = converted(test::worked_nq_record(), config({{"input_form", "simplified"}})).faults;
    CHECK_THAT(reverse.rows()[0].message, Catch::Contains("--input-form original"));
  }
  SECTION("simplified text with too few tokens") {
    Json record = test::simplified_nq_record(test::worked_nq_record());
    record["document_text"] = "<P> one two </P>";
    const auto faults = converted(record, config({{"input_form", "simplified"}})).faults;
    CHECK(test::has_fault(faults, data::Severity::reject, "token_count_mismatch"));
  }
  SECTION("a text repeated without end by overlapping candidates") {
    const Json record = changed([](Json& r) {
      while (r["document_tokens"].size() < 3000) r["document_tokens"].push_back(r["document_tokens"][4]);
      Json candidate = r["long_answer_candidates"][0];
      candidate.update({{"start_token", 0}, {"end_token", 3000}});
      while (r["long_answer_candidates"].size() < 1500) r["long_answer_candidates"].push_back(candidate);
    });
    CHECK(test::has_fault(converted(record).faults, data::Severity::reject, "document_too_long"));
  }
  SECTION("records that need no labels") {
    Json record = test::worked_nq_record();
    record.erase("annotations");
    CHECK(converted(record).faults.rejected());
    const auto result = converted(record, config(Json::object(), prepare::Labels::optional));
    CHECK_FALSE(result.faults.rejected());
    CHECK(result.examples.size() == 2);
    CHECK(list(*result.gold, "yes_no").empty());
  }
}

TEST_CASE("windows without an answer are sampled, the same ones in any order", "[tasks][nq]") {
  const Json record = changed([](Json& r) {
    while (r["document_tokens"].size() < 4000) r["document_tokens"].push_back(r["document_tokens"][4]);
    Json candidate = r["long_answer_candidates"][0];
    candidate.update({{"start_token", 17}, {"end_token", 4000}});
    r["long_answer_candidates"].push_back(candidate);
  });
  const auto kept = [&](const Json& given, prepare::Labels labels = prepare::Labels::required) {
    Numbers windows;
    for (const auto& example : converted(record, config(given, labels)).examples) {
      windows.push_back(scalar(example, "window_index"));
    }
    return windows;
  };
  const Numbers all = kept(Json::object());
  REQUIRE(all.size() > 600);
  const Numbers half = kept({{"include_unknown_rate", 0.5}});
  // The tolerance is six standard deviations of a binomial distribution.
  const double expected = static_cast<double>(all.size()) / 2;
  CHECK(std::abs(static_cast<double>(half.size()) - expected) < 6 * std::sqrt(expected / 2));
  CHECK(half == kept({{"include_unknown_rate", 0.5}}));
  CHECK(half != kept({{"include_unknown_rate", 0.5}, {"sample_seed", 1}}));
  const Numbers few = kept({{"include_unknown_rate", 0.0}});
  CHECK(few.size() < 5);  // only windows with a part of the answer
  CHECK(!few.empty());
  CHECK(kept({{"include_unknown_rate", 0.0}, {"is_train", false}}) == all);
  CHECK(kept({{"include_unknown_rate", 0.0}}, prepare::Labels::optional) == all);
}

TEST_CASE("settings that cannot be meant are refused by name", "[tasks][nq]") {
  const auto message = [](const Json& given) -> std::string {
    try {
      config(given);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(message({{"global_seq_len", 3}}), Catch::Contains("global_seq_len: expected an integer from 4"));
  CHECK_THAT(message({{"seq_len", 5}}), Catch::Contains("seq_len: expected an integer from 6"));
  CHECK_THAT(message({{"stride", 0}}), Catch::Contains("stride"));
  CHECK_THAT(message({{"include_unknown_rate", -0.5}}), Catch::Contains("include_unknown_rate"));
  CHECK_THAT(message({{"global_token_types", {1, 2}}}), Catch::Contains("three integers"));
  CHECK_THAT(message({{"input_form", "simple"}}), Catch::Contains("original, simplified or either"));
  CHECK_THAT(message({{"special_ids", {{"html_open", 99999}}}}), Catch::Contains("html_open"));
  CHECK(message({{"fixed_blocks", true}, {"global_seq_len", 1}}).empty());

  const test::TemporaryFolder folder;
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nx\n");
  CHECK_THROWS_WITH(make_preparation(default_settings(), folder / "vocab.txt", prepare::Labels::required),
                    Catch::Contains("vocab_special_missing") && Catch::Contains("[unused102]"));
}

namespace {

struct Prepared {
  test::TemporaryFolder folder;
  prepare::Counts counts;
  Words report;

  explicit Prepared(const std::vector<std::string>& files, const Json& given = Json::object()) {
    prepare::RunOptions options;
    for (std::size_t i = 0; i < files.size(); ++i) {
      options.inputs.push_back(folder / ("in" + std::to_string(i) + ".jsonl"));
      test::write_file(options.inputs.back(), files[i]);
    }
    options.output = folder / "out.h5";
    options.report = folder / "report.jsonl";
    options.split = "train";
    counts = prepare::run(NqPreparation(config(given), test::small_nq_tokenizer()), options);
    for (const Json& row : test::nq_report_rows(options.report)) {
      report.push_back(fmt::format("{} {} {} {}", row.at("record").get<int>(), row.at("severity").get<std::string>(),
                                   row.at("code").get<std::string>(), row.at("field").get<std::string>()));
    }
  }
  data::DatasetReader open() const { return {{folder / "out.h5"}, nq::schema(false)}; }
};

std::string line_of(std::int64_t id) {
  return json_line(changed([&](Json& r) { r["example_id"] = id; })) + "\n";
}

}  // namespace

TEST_CASE("a bad line is rejected and the next one read", "[tasks][nq]") {
  const std::string big = R"({"example_id": 99999999999999999999, "question_text": ""})";
  const Prepared prepared({line_of(1) + "{\"example_id\": \n" + "\n" + line_of(2) + "{} {}\n" + "\"\xff\"\n" + "[]\n" +
                           big + "\n \n" + line_of(1) + line_of(3)});
  CHECK(prepared.report == Words{"1 reject json_syntax ", "3 reject json_syntax ", "4 reject utf8_invalid ",
                                 "5 reject record_not_object ", "6 reject id_range example_id",
                                 "7 reject duplicate_id id", "0 warn empty_line "});
  CHECK(prepared.counts.records == 9);
  CHECK(prepared.counts.rejected == 6);
  CHECK(prepared.counts.examples == 6);
  CHECK_FALSE(prepared.counts.fatal);
  const auto reader = prepared.open();
  CHECK(reader.size() == 6);
  REQUIRE(reader.gold_size() == 3);
  CHECK(scalar(reader.read_gold(2), "example_id") == 3);
  CHECK(scalar(reader.read(5), "record_index") == 8);
  CHECK(reader.faults().size() == 6);
}

TEST_CASE("cut gzip data keep their complete lines", "[tasks][nq]") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += line_of(i * 2654435761LL % 1000003);
  const std::string packed = test::gzip(text);
  const Prepared whole({packed});
  CHECK(whole.counts.records == 300);
  const Prepared cut({packed.substr(0, packed.size() - 10)});
  CHECK(cut.counts.fatal);
  REQUIRE(!cut.report.empty());
  CHECK_THAT(cut.report.back(), Catch::EndsWith("fatal gzip_truncated "));
  CHECK(cut.counts.records > 100);
  CHECK(cut.counts.records == cut.open().gold_size());
}

TEST_CASE("gold stays beside the windows when they are left out, in parts, and for any number of threads",
          "[tasks][nq]") {
  const Json sampling = {{"include_unknown_rate_for_unanswerable", 0.0}};
  const std::string empty = json_line(changed([](Json& r) {
    r["example_id"] = 77;
    r["annotations"][0]["short_answers"] = Json::array();
    r["annotations"][0]["long_answer"].update(
        {{"start_token", -1}, {"end_token", -1}, {"start_byte", -1}, {"end_byte", -1}});
  }));
  const std::vector<std::string> files = {line_of(1) + empty + "\n", line_of(2) + line_of(1), line_of(3)};
  const int threads = thread_count();
  set_thread_count(1);
  const Prepared one(files, sampling);
  set_thread_count(3);
  const Prepared three(files, sampling);
  set_thread_count(threads);
  CHECK(read_file(one.folder / "out.h5") == read_file(three.folder / "out.h5"));
  const auto reader = one.open();
  CHECK(reader.size() == 6);  // the document without an answer has no window, but gold
  REQUIRE(reader.gold_size() == 4);
  Numbers ids;
  for (std::int64_t i = 0; i < 4; ++i) ids.push_back(scalar(reader.read_gold(i), "example_id"));
  CHECK(ids == Numbers{1, 77, 2, 3});
}
