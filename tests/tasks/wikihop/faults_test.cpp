// Faults of bad records and files, and the worked examples of truncation, mentions and layout.
#include <algorithm>

#include "etc_core/base/error.h"
#include "tasks/wikihop/features.h"
#include "tasks/wikihop/linking.h"
#include "tasks/wikihop/schema.h"
#include "tasks/wikihop/truncate.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/raw_records.h"
#include "tests/tasks/wikihop/small_records.h"

using namespace etc;
using namespace etc::wikihop;
namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

PrepareConfig config(Parity parity = Parity::repaired, bool labels_required = true) {
  PrepareConfig c;
  c.parity = parity;
  c.labels_required = labels_required;
  return c;
}

prepare::Converted converted(const std::string& text, const PrepareConfig& c = config()) {
  return WikihopPreparation(c, test::small_tokenizer(), data::load_splitter("icu")).convert(test::raw_record(text));
}

// The small record with members replaced, or removed by null.
prepare::Converted patched(const Json& patch, const PrepareConfig& c = config()) {
  Json record = test::small_record();
  record.merge_patch(patch);
  return converted(json_line(record), c);
}

Words rows(const Json& patch, const PrepareConfig& c = config()) {
  return test::fault_words(patched(patch, c).faults);
}

std::int64_t flags(const prepare::Converted& result) {
  REQUIRE(result.examples.size() == 1);
  return std::get<std::int64_t>(result.examples[0].at("flags"));
}

const Numbers& numbers(const prepare::Converted& result, const char* feature) {
  REQUIRE(result.examples.size() == 1);
  return std::get<Numbers>(result.examples[0].at(feature));
}

// Prepares a whole file within this process.
struct Prepared {
  test::TemporaryFolder folder;
  prepare::Counts counts;
  std::vector<Json> report;
  std::vector<data::Fault> stored;  // /rejects

  explicit Prepared(const std::string& text, const PrepareConfig& c = config()) {
    test::write_file(folder / "in.json", text);
    prepare::RunOptions options;
    options.inputs = {folder / "in.json"};
    options.output = folder / "out.h5";
    options.report = folder / "report.jsonl";
    options.split = "train";
    counts = prepare::run(WikihopPreparation(c, test::small_tokenizer(), data::load_splitter("icu")), options);
    report = test::report_rows(options.report);
    stored = data::DatasetReader({options.output}, wikihop::schema()).faults();
    CHECK(counts.records == counts.examples + counts.rejected + counts.dropped);
  }

  // "record id severity code field" of every row, sorted.
  Words rows() const {
    Words words;
    for (const Json& row : report) {
      words.push_back(fmt::format("{} {} {} {} {}", row.at("record").get<int>(), row.at("id").get<std::string>(),
                                  row.at("severity").get<std::string>(), row.at("code").get<std::string>(),
                                  row.at("field").get<std::string>()));
    }
    std::sort(words.begin(), words.end());
    return words;
  }
};

// Links of one sentence whose candidates and sentence come from this tokenizer.
Numbers links(const data::Tokenizer& tokenizer, const Words& candidates, const std::string& sentence, Parity parity) {
  std::vector<data::Tokens> tokens;
  for (const std::string& candidate : candidates) tokens.push_back(tokenizer.encode(candidate));
  const MentionFinder finder(candidates, tokens, parity, std::string(tokenizer.kind()) == "sentencepiece");
  const data::Tokens words = tokenizer.encode(sentence);
  Numbers result(words.ids.size(), -1);
  std::vector<bool> mentioned(candidates.size(), false);
  finder.link(sentence, words, result, mentioned);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (std::count(result.begin(), result.end(), static_cast<std::int64_t>(c)) > 0) CHECK(mentioned[c]);
  }
  return result;
}

}  // namespace

TEST_CASE("every fault of a record has its code, severity and field", "[wikihop]") {
  struct Case {
    Json patch;
    Words rows;
  };
  const std::vector<Case> cases = {
      {Json::object(), {}},
      {{{"id", nullptr}}, {"reject missing_field id"}},
      {{{"query", nullptr}}, {"reject missing_field query"}},
      {{{"candidates", nullptr}}, {"reject missing_field candidates"}},
      {{{"supports", nullptr}}, {"reject missing_field supports"}},
      {{{"id", 7}}, {"reject wrong_type id"}},
      {{{"query", {"x"}}}, {"reject wrong_type query"}},
      {{{"candidates", "norway"}}, {"reject wrong_type candidates"}},
      {{{"candidates", {"norway", 5}}}, {"reject wrong_type candidates[1]"}},
      {{{"candidates", {5, "\u200b", "b", "B"}}, {"answer", "b"}},
       {"reject wrong_type candidates[0]", "warn candidate_duplicate candidates[3]",
        "reject candidate_empty candidates[1]"}},
      {{{"supports", true}}, {"reject wrong_type supports"}},
      {{{"supports", {"x", 5, {"y", "z"}}}}, {"reject wrong_type supports[1]", "reject wrong_type supports[2]"}},
      {{{"answer", 5}}, {"reject wrong_type answer"}},
      {{{"id", ""}}, {"reject id_empty id"}},
      {{{"candidates", {"norway", " \t\u00a0"}}}, {"reject candidate_empty candidates[1]"}},
      {{{"candidates", {"norway", "\u200b"}}}, {"reject candidate_empty candidates[1]"}},
      {{{"candidates", {"norway"}}}, {"warn too_few_candidates candidates"}},
      {{{"candidates", Json::array()}}, {"reject too_few_candidates candidates", "reject answer_not_candidate answer"}},
      {{{"answer", nullptr}}, {"reject label_missing answer"}},
      {{{"answer", "denmark"}}, {"reject answer_not_candidate answer"}},
      {{{"answer", "NORWAY"}}, {}},
      {{{"answer", " Norway "}}, {"warn answer_untrimmed answer"}},
      {{{"candidates", {"norway", "new york", " Norway"}}}, {"warn candidate_duplicate candidates[2]"}},
      {{{"query", ""}}, {"reject query_empty query"}},
      {{{"query", " \u200b"}}, {"reject query_empty query"}},
      {{{"supports", Json::array()}}, {"reject supports_empty supports"}},
      {{{"supports", {"Oslo.", "", " \u00a0\n"}}},
       {"warn document_empty supports[1]", "warn document_empty supports[2]"}},
      {{{"query", std::string("oslo\0", 5)}}, {"warn bad_character query"}},
      {{{"supports", {"it \ufffd snows"}}}, {"warn bad_character supports[0]"}},
      {{{"id", 7}, {"query", nullptr}, {"supports", "x"}},
       {"reject wrong_type id", "reject missing_field query", "reject wrong_type supports"}},
  };
  for (const Case& c : cases) {
    CAPTURE(json_line(c.patch));
    const prepare::Converted result = patched(c.patch);
    CHECK(test::fault_words(result.faults) == c.rows);
    const bool rejected =
        std::any_of(c.rows.begin(), c.rows.end(), [](const std::string& row) { return row.starts_with("reject"); });
    CHECK(result.faults.rejected() == rejected);
    CHECK(result.examples.size() == (rejected ? 0u : 1u));
    if (!rejected) CHECK(((flags(result) & kWarned) != 0) == !c.rows.empty());
    for (const data::Fault& row : result.faults.rows()) CHECK(!row.message.empty());
  }
}

TEST_CASE("a missing or unusable answer is flagged where labels are not required", "[wikihop]") {
  const PrepareConfig test_split = config(Parity::repaired, false);
  const auto missing = patched({{"answer", nullptr}}, test_split);
  CHECK(test::fault_words(missing.faults).empty());
  CHECK((flags(missing) & kLabelMissing) != 0);
  CHECK(std::get<std::int64_t>(missing.examples[0].at("label_id")) == -1);
  CHECK(std::get<std::string>(missing.examples[0].at("answer")).empty());
  const auto unknown = patched({{"answer", "denmark"}}, test_split);
  CHECK(test::fault_words(unknown.faults) == Words{"warn answer_not_candidate answer"});
  CHECK((flags(unknown) & (kLabelUnusable | kLabelMissing)) == kLabelUnusable);
}

TEST_CASE("an answer that must be trimmed is a label only where the reference is repaired", "[wikihop]") {
  const Json patch = {{"answer", "Norway "}};
  const auto repaired = patched(patch);
  CHECK(std::get<std::int64_t>(repaired.examples.at(0).at("label_id")) == 0);
  CHECK(rows(patch, config(Parity::reference)) == Words{"reject answer_untrimmed answer"});
  const auto predicted = patched(patch, config(Parity::reference, false));
  CHECK(test::fault_words(predicted.faults) == Words{"warn answer_untrimmed answer"});
  CHECK((flags(predicted) & kLabelUnusable) != 0);
  CHECK(std::get<std::int64_t>(predicted.examples[0].at("label_id")) == -1);
}

TEST_CASE("of equal candidates the first is the label and the last is linked", "[wikihop]") {
  const auto result = patched({{"candidates", {"norway", "new york", " Norway"}}});
  CHECK((flags(result) & kEqualCandidates) != 0);
  CHECK(std::get<std::int64_t>(result.examples[0].at("label_id")) == 0);
  CHECK(std::get<Words>(result.examples[0].at("candidates")) == Words{"norway", "new york", "norway"});
  // norway new york norway · country oslo · oslo is norway . it snows . …
  const Numbers& linked = numbers(result, "l2g_linked_ids");
  CHECK(Numbers(linked.begin(), linked.begin() + 10) == Numbers{0, 1, 1, 2, -1, -1, -1, -1, 2, -1});
}

TEST_CASE("lengths beyond the capacities are rejected with all the numbers", "[wikihop]") {
  PrepareConfig c = config();
  c.long_seq_len = 4;  // 3 candidate tokens + 2 query tokens
  CHECK(rows(Json::object(), c) == Words{"reject prefix_too_long candidates"});
  c.long_seq_len = 5;  // nothing left for documents
  const auto emptied = patched(Json::object(), c);
  CHECK(test::fault_words(emptied.faults) == Words{"warn truncated supports"});
  CHECK((flags(emptied) & (kLongCut | kGlobalCut | kEmptiedDocument | kAnswerNotMentioned | kWarned)) ==
        (kLongCut | kEmptiedDocument | kAnswerNotMentioned | kWarned));
  CHECK(numbers(emptied, "global_token_ids") == Numbers{4, 4, 3, 3, 5, 5});
  CHECK(numbers(emptied, "global_paragraph_breakpoints") == Numbers{1, 1, 0, 1, 1, 1});
  CHECK(numbers(emptied, "long_paragraph_breakpoints") == Numbers{1, 0, 1, 0, 1});

  c = config();
  c.global_seq_len = 8;  // 2 candidates + 2 query tokens + 2 documents + 3 sentences
  const auto overflow = patched(Json::object(), c);
  CHECK(test::fault_words(overflow.faults) == Words{"reject global_overflow supports"});
  const std::string& message = overflow.faults.rows()[0].message;
  for (const char* part : {"9 ", "=8", "2 candidates", "2 query", "2 documents", "3 sentences"}) {
    CAPTURE(message, part);
    CHECK(message.find(part) != std::string::npos);
  }
  c.max_num_sentences = 2;
  const auto cut = patched(Json::object(), c);
  CHECK(test::fault_words(cut.faults) == Words{"warn truncated supports"});
  CHECK((flags(cut) & (kLongCut | kGlobalCut | kEmptiedDocument)) == kGlobalCut);
  CHECK(std::get<std::int64_t>(cut.examples[0].at("sentences_before")) == 3);
  CHECK(std::get<std::int64_t>(cut.examples[0].at("sentences_after")) == 2);
  CHECK(std::get<std::int64_t>(cut.examples[0].at("doc_tokens_before")) == 12);
  CHECK(std::get<std::int64_t>(cut.examples[0].at("doc_tokens_after")) == 9);
}

TEST_CASE("duplicate keys, halves of surrogate pairs and numbers out of range are told apart", "[wikihop]") {
  const std::string rest =
      R"("candidates": ["norway", "new york"], "answer": "norway", "supports": ["Oslo is Norway."]})";
  const auto doubled = converted(R"({"id": "WH_dev_1", "query": "x", "query": "country oslo", )" + rest);
  CHECK(test::fault_words(doubled.faults) == Words{"warn duplicate_key query"});
  CHECK(std::get<std::string>(doubled.examples.at(0).at("query")) == "country oslo");
  const auto half = converted(R"({"id": "WH_dev_1", "query": "country \ud83d oslo", )" + rest);
  CHECK(test::fault_words(half.faults) == Words{"reject bad_character query"});
  const auto ignored = converted(R"({"id": "WH_dev_1", "note": "\udc00", "query": "country oslo", )" + rest);
  CHECK(test::fault_words(ignored.faults).empty());
  const auto pair = converted(R"({"id": "WH_dev_1", "query": "country \ud83d\ude00 oslo", )" + rest);
  CHECK(test::fault_words(pair.faults).empty());
  // A number out of range matters in a member that is read only.
  const Prepared large(test::array_of({R"({"id": "WH_dev_1", "n": 1e999, "query": "country oslo", )" + rest,
                                       R"({"id": "WH_dev_2", "query": 1e999, )" + rest}));
  CHECK(large.rows() == Words{"1  reject wrong_type query"});
  CHECK(large.counts.codes.at("ignored unknown_key n") == 1);
}

TEST_CASE("unknown keys and unusual ids are counted, not reported", "[wikihop]") {
  const auto result = patched({{"annotations", {{"follows", "single"}}}, {"extra", 1}, {"id", "WH_train_"}});
  CHECK(test::fault_words(result.faults).empty());
  CHECK(result.faults.counted() == Words{"unknown_key annotations", "unknown_key extra", "id_pattern"});
  for (const char* usual : {"WH_train_0", "WH_dev_12", "WH_test_0099"}) {
    CHECK(patched({{"id", usual}}).faults.counted().empty());
  }
  for (const char* unusual : {"WH_train_1a", "wh_train_1", "MH_dev_1", "WH_train_-1", " WH_dev_1"}) {
    CHECK(patched({{"id", unusual}}).faults.counted() == Words{"id_pattern"});
  }
  Json record = test::small_record(2);
  record["annotations"] = Json::array();
  const Prepared run(test::array_of({json_line(test::small_record(1)), json_line(record)}));
  CHECK(run.report.empty());
  CHECK(run.counts.codes == std::map<std::string, std::int64_t>{{"ignored unknown_key annotations", 1}});
}

TEST_CASE("the malformed example records give exactly the rows they must", "[wikihop]") {
  const Prepared run(test::array_of(
      {R"({"id": "WH_train_7", "query": "country x", "answer": "b", "candidates": ["a", "  "], "supports": ["text ."]})",
       R"({"id": "WH_train_8", "query": "country x", "answer": "A ", "candidates": ["a", "A"], "supports": ["text .", 5]})",
       R"({"id": "WH_train_8", "query": "country x", "candidates": [], "supports": []})"}));
  CHECK(run.rows() == Words{
                          "0 WH_train_7 reject answer_not_candidate answer",
                          "0 WH_train_7 reject candidate_empty candidates[1]",
                          "1 WH_train_8 reject wrong_type supports[1]",
                          "1 WH_train_8 warn answer_untrimmed answer",
                          "1 WH_train_8 warn candidate_duplicate candidates[1]",
                          "2 WH_train_8 reject duplicate_id id",
                          "2 WH_train_8 reject label_missing answer",
                          "2 WH_train_8 reject supports_empty supports",
                          "2 WH_train_8 reject too_few_candidates candidates",
                      });
  CHECK(run.counts.records == 3);
  CHECK(run.counts.rejected == 3);
  CHECK(run.counts.examples == 0);
  CHECK(run.stored.size() == 7);  // the warnings are in the report alone
  for (const Json& row : run.report) {
    CHECK(row.at("file") == "in.json");
    if (row.at("code") != "duplicate_id") continue;
    CHECK(row.at("message").get<std::string>().find("record 1") != std::string::npos);
    CHECK(row.at("message").get<std::string>().find("record 2") != std::string::npos);
  }
}

TEST_CASE("what makes a file unreadable has its code and place, and the records before it are kept", "[wikihop]") {
  const std::string good = json_line(test::small_record(1)), more = json_line(test::small_record(2));
  struct Case {
    std::string text, code;
    std::int64_t records, byte_offset;
  };
  std::string broken_text = more;
  broken_text.replace(broken_text.find("oslo"), 2, "\xff\xfe");
  const std::int64_t second = 1 + static_cast<std::int64_t>(good.size()) + 1;
  const auto at = [&](const std::string& text, const char* what) { return static_cast<std::int64_t>(text.find(what)); };
  const std::string nan = "[" + good + ",{\"id\": NaN}]", infinity = "[" + good + ",{\"id\": -Infinity}]";
  const std::string bad = "[" + good + "," + broken_text + "]";
  const std::vector<Case> cases = {
      {"", "json_syntax", 0, 0},
      {" \n", "json_syntax", 0, 2},
      {"\"text\"", "top_level_not_array", 0, 0},
      {"7", "top_level_not_array", 0, 0},
      {"null", "top_level_not_array", 0, 0},
      {"hello", "json_syntax", 0, 0},
      {std::string("\xff[]"), "utf8_invalid", 0, 0},
      {bad, "utf8_invalid", 1, at(bad, "\xff\xfe")},
      {nan, "json_syntax", 1, at(nan, "NaN")},
      {infinity, "json_syntax", 1, at(infinity, "-Infinity")},
      {"[" + good + "]]", "json_syntax", 1, second},
      {"[" + good + "] {}", "json_syntax", 1, second + 1},
      {"[" + good + " " + more + "]", "json_syntax", 1, second},
      {"[" + good + ",]", "json_syntax", 1, second},
      {"[" + good, "json_syntax", 1, second - 1},
      {"[" + good + ",", "json_syntax", 1, second},
      {"[" + good + "," + more.substr(0, 20), "json_syntax", 1, second + 20},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Prepared run(c.text);
    CHECK(run.counts.fatal);
    CHECK(run.counts.records == c.records);
    CHECK(run.counts.examples == c.records);
    REQUIRE(run.report.size() == 1);
    const Json& row = run.report[0];
    CHECK(row.at("severity") == "fatal");
    CHECK(row.at("code") == c.code);
    CHECK(row.at("record") == c.records);
    const auto message = row.at("message").get<std::string>();
    CAPTURE(message);
    CHECK(message.starts_with("byte "));
    CHECK(message.find("line 1, column") == (c.text == " \n" ? std::string::npos : message.find("line")));
    // An invalid literal is reported at its first letter or after its longest valid prefix.
    CHECK(row.at("byte_offset").get<std::int64_t>() >= c.byte_offset);
    CHECK(row.at("byte_offset").get<std::int64_t>() <= c.byte_offset + 2);
  }
}

TEST_CASE("a byte-order mark, records that are no objects and repeated ids do not stop the run", "[wikihop]") {
  const std::string good = json_line(test::small_record(1)), more = json_line(test::small_record(2));
  const Prepared marked("\xEF\xBB\xBF[" + good + "]");
  CHECK(!marked.counts.fatal);
  CHECK(marked.counts.examples == 1);
  CHECK(marked.rows() == Words{"0  warn json_syntax "});
  const Prepared run(test::array_of({good, "5", "null", "[]", "\"x\"", good, more}));
  CHECK(run.rows() == Words{"1  reject record_not_object ", "2  reject record_not_object ",
                            "3  reject record_not_object ", "4  reject record_not_object ",
                            "5 WH_train_1 reject duplicate_id id"});
  CHECK(run.counts.records == 7);
  CHECK(run.counts.examples == 2);
  CHECK(run.counts.rejected == 5);
}

TEST_CASE("sentences are removed in the worked order", "[wikihop]") {
  struct Case {
    std::vector<Numbers> documents;
    std::int64_t max_sentences, budget;
    Numbers order, kept;
  };
  const std::vector<Case> cases = {
      {{{5, 5, 5}, {5, 5, 5, 5, 5}, {5, 5}}, 7, 1000, {1, 1, 0}, {2, 3, 2}},
      {{{10, 10}, {1, 1, 1, 1}, {7, 7, 7}}, 100, 30, {1, 2, 1, 0}, {1, 2, 2}},
      {{{5}, {5}, {5}}, 2, 1000, {0}, {0, 1, 1}},
      {{{2, 2}, {30, 1}}, 100, 10, {0, 1, 0, 1}, {0, 0}},
      {{{5, 5}, {}, {5}}, 3, 15, {}, {2, 0, 1}},
      {{}, 0, 0, {}, {}},
      {{{3}, {0}}, 0, 0, {0, 1}, {0, 0}},
  };
  for (const Case& c : cases) {
    const Truncation result = truncate(c.documents, c.max_sentences, c.budget);
    CHECK(result.removal_order == c.order);
    CHECK(result.kept == c.kept);
    std::int64_t sentences = 0, tokens = 0;
    for (std::size_t d = 0; d < c.documents.size(); ++d) {
      sentences += c.kept[d];
      for (std::int64_t s = 0; s < c.kept[d]; ++s) tokens += c.documents[d][static_cast<std::size_t>(s)];
    }
    CHECK(result.sentences_after == sentences);
    CHECK(result.tokens_after == tokens);
  }
  CHECK_THROWS_AS(truncate({{1}}, 5, -1), Error);
}

TEST_CASE("mentions are linked as the worked examples say", "[wikihop]") {
  const auto tokenizer = test::small_tokenizer();
  for (const Parity parity : {Parity::reference, Parity::repaired}) {
    CHECK(links(*tokenizer, {"york", "new york", "york city"}, "new york city", parity) == Numbers{1, 2, 2});
    CHECK(links(*tokenizer, {"u.s.", "u.s"}, "U.S.", parity) == Numbers{1, 1, 1, 0});
    CHECK(links(*tokenizer, {"film"}, "a filmmaker films", parity) == Numbers{-1, 0, -1, -1});
    CHECK(links(*tokenizer, {"norway"}, "", parity).empty());
    CHECK(links(*tokenizer, {"norway"}, "NORWAY, norway.", parity) == Numbers{0, -1, 0, -1});
  }
}

TEST_CASE("words unknown to the vocabulary equal each other in the reference only", "[wikihop]") {
  const auto tokenizer = test::small_tokenizer();
  CHECK(links(*tokenizer, {"\u03c9"}, "\u03c9 is \u03c8", Parity::reference) == Numbers{0, -1, 0});
  CHECK(links(*tokenizer, {"\u03c9"}, "\u03c9 is \u03c8", Parity::repaired) == Numbers{0, -1, -1});
  CHECK(links(*tokenizer, {"\u03c9"}, "it is \u03c8", Parity::reference) == Numbers{-1, -1, -1});
}

TEST_CASE("capitals hide mentions from a cased SentencePiece vocabulary in the reference only", "[wikihop]") {
  std::vector<test::ModelPiece> pieces = {{"<unk>", 0, test::PieceType::unknown},
                                          {"\u2581", -3},
                                          {".", -3},
                                          {"(", -3},
                                          {"\u2581norway", -4},
                                          {"\u2581Norway", -4},
                                          {"\u2581is", -4}};
  for (char c = 'a'; c <= 'z'; ++c) pieces.push_back({std::string(1, c), -6});
  for (char c = 'A'; c <= 'Z'; ++c) pieces.push_back({std::string(1, c), -6});
  const test::TemporaryFolder folder;
  test::write_file(folder / "cased.model", test::sentencepiece_model(pieces));
  const auto tokenizer = data::load_tokenizer(folder / "cased.model");
  CHECK(links(*tokenizer, {"norway"}, "Norway is norway.", Parity::reference) == Numbers{-1, -1, 0, -1});
  CHECK(links(*tokenizer, {"norway"}, "Norway is norway.", Parity::repaired) == Numbers{0, -1, 0, -1});
  // When repaired, mentions next to punctuation or split into letters are found, too, but not inside a word.
  CHECK(links(*tokenizer, {"norway"}, "(norway", Parity::reference) == Numbers(8, -1));
  CHECK(links(*tokenizer, {"norway"}, "(norway", Parity::repaired) == Numbers{-1, -1, 0, 0, 0, 0, 0, 0});
  CHECK(links(*tokenizer, {"way"}, "norway", Parity::repaired) == Numbers{-1});
}

TEST_CASE("the worked record gives the worked sequences", "[wikihop]") {
  for (const Parity parity : {Parity::reference, Parity::repaired}) {
    const auto result = converted(json_line(test::worked_record()), config(parity));
    CHECK(test::fault_words(result.faults).empty());
    // norway 101, new 102, york 103, country 104, oslo 105, is 106, it 107, snows 108, he 109, left 110
    CHECK(numbers(result, "long_token_ids") ==
          Numbers{101, 102, 103, 104, 105, 105, 106, 101, 107, 108, 109, 110, 102, 103});
    CHECK(numbers(result, "long_token_type_ids") == Numbers{4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(numbers(result, "long_sentence_ids") == Numbers{0, 1, 1, 2, 3, 5, 5, 5, 6, 6, 8, 8, 8, 8});
    CHECK(numbers(result, "long_paragraph_ids") == Numbers{-1, -1, -1, -1, -1, 4, 4, 4, 4, 4, 7, 7, 7, 7});
    CHECK(numbers(result, "long_paragraph_breakpoints") == Numbers{1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1});
    CHECK(numbers(result, "l2g_linked_ids") == Numbers{0, 1, 1, -1, -1, -1, -1, 0, -1, -1, -1, -1, 1, 1});
    CHECK(numbers(result, "global_token_ids") == Numbers{4, 4, 3, 3, 5, 1, 1, 5, 1});
    CHECK(numbers(result, "global_token_type_ids") == Numbers{6, 6, 5, 5, 7, 0, 0, 7, 0});
    CHECK(numbers(result, "global_paragraph_breakpoints") == Numbers{1, 1, 0, 1, 0, 0, 1, 0, 1});
    CHECK(flags(result) == 0);
  }
}

TEST_CASE("query tokens are never linked to candidates", "[wikihop]") {
  const auto result = patched({{"query", "country norway"}});
  const Numbers& linked = numbers(result, "l2g_linked_ids");
  CHECK(linked[3] == -1);
  CHECK(linked[4] == -1);
}

TEST_CASE("a mention of letters neither begins behind a letter of several bytes nor hides one it overlaps",
          "[wikihop]") {
  const auto found = [](const data::Tokens& candidate, const data::Tokens& sentence) {
    const MentionFinder finder({"c"}, {candidate}, Parity::repaired, true);
    Numbers result(sentence.pieces.size(), -1);
    std::vector<bool> mentioned(1, false);
    finder.link("", sentence, result, mentioned);
    return result;
  };
  const auto tokens = [](const Words& pieces) {
    data::Tokens made;
    made.pieces = pieces;
    return made;
  };
  const std::string oslo = "\u2581oslo";
  CHECK(found(tokens({oslo}), tokens({"\u2581\u00E9", "oslo"})) == Numbers{-1, -1});
  CHECK(found(tokens({oslo}), tokens({"\u2581\u2013", "oslo"})) == Numbers{-1, 0});  // after a dash
  CHECK(found(tokens({oslo, oslo}), tokens({oslo, oslo, oslo})) == Numbers{0, 0, 0});
}

TEST_CASE("a piece within a character is linked as the piece where the character begins", "[wikihop]") {
  Record record;
  record.candidates = {"x"};
  TokenizedRecord tokens;
  data::Tokens candidate, sentence;
  candidate.pieces = {"x"};
  candidate.ids = {7};
  sentence.pieces = {"x", "", "y", ""};
  sentence.ids = {7, 8, 9, 10};
  tokens.candidates = {candidate};
  tokens.beginnings.resize(1);
  tokens.beginnings[0].push_back({"x y", sentence});
  CHECK(lay_out(record, tokens, {1}, config(), false).l2g_linked_ids == Numbers{0, 0, 0, -1, -1});
}
