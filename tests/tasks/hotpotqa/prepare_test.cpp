// Worked layouts, labels with either parity setting, and the faults of bad records.
#include "tasks/hotpotqa/prepare.h"

#include <algorithm>

#include "data/dataset_info.h"
#include "etc_core/base/error.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/hotpotqa/features.h"
#include "tasks/hotpotqa/feed.h"
#include "tasks/hotpotqa/schema.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/hotpotqa/examples.h"

using namespace etc;
using namespace etc::hotpotqa;

namespace {

using Numbers = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

// The record of task-hotpotqa 2.8 with this answer.
std::string worked_record(const std::string& answer) {
  return R"({"_id": "w", "question": "q0 q1 q2", "answer": ")" + answer +
         R"(", "supporting_facts": [["A", 1], ["B", 0]], "type": "bridge", "level": "hard",
         "context": [["A", ["x0 x1 x2", " y0 y1"]], ["B", ["z0 z1"]]]})";
}

// The worked record, its titles tokenized as in the example: A → a0, B → b0 b1.
Record worked(const std::string& answer) {
  prepare::FaultList faults;
  Record record =
      read_record(test::raw_record(worked_record(answer)), test::hotpotqa_config(Parity::reference), faults);
  CHECK(test::fault_words(faults).empty());
  record.context[0].title = "a0";
  record.context[1].title = "b0 b1";
  (*record.supporting_facts)[0].title = "a0";
  (*record.supporting_facts)[1].title = "b0 b1";
  return record;
}

prepare::Converted converted(const std::string& text, const PrepareConfig& c) {
  return HotpotqaPreparation(c, test::hotpotqa_tokenizer()).convert(test::raw_record(text));
}

std::int64_t number(const data::Example& example, const char* name) {
  return std::get<std::int64_t>(example.at(name));
}

}  // namespace

TEST_CASE("the worked record gives the worked sequences", "[tasks][hotpotqa]") {
  const auto tokenizer = test::hotpotqa_tokenizer();
  const Features f = lay_out(worked("z1"), *tokenizer, test::hotpotqa_config(Parity::reference));
  CHECK(f.global_token_ids == Numbers{101, 3, 3, 3, 5, 1, 1, 1, 5, 1, 1});
  CHECK(f.global_paragraph_breakpoints == Numbers{1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1});
  CHECK(f.global_paragraph_ids == Numbers{-1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1});
  CHECK(f.global_sentence_ids == Numbers{-1, -1, -1, -1, -1, -1, 0, 1, -1, -1, 0});
  CHECK(f.supporting_facts == Numbers{0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1});
  CHECK(f.long_token_type_ids == Numbers{1, 3, 3, 3, 2, 1, 1, 1, 1, 1, 2, 2, 1, 1});
  CHECK(f.long_sentence_ids == Numbers{-1, 1, 2, 3, 5, 6, 6, 6, 7, 7, 9, 9, 10, 10});
  CHECK(f.long_paragraph_ids == Numbers{-1, -1, -1, -1, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8});
  CHECK(f.long_paragraph_breakpoints == Numbers{1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(f.long_tokens_to_unigrams == Numbers{-1, -1, -1, -1, 0, 0, 1, 2, 0, 1, 0, 1, 0, 1});
  CHECK(f.global_text == Words{"", "", "", "", "", "a0", "x0 x1 x2", " y0 y1", "", "b0 b1", "z0 z1"});
  const Label label = choose_label(worked("z1"), f, test::hotpotqa_config(Parity::reference));
  CHECK(label.fault == Label::Fault::none);
  CHECK(label.type == AnswerType::span);
  CHECK(label.span == text::TokenSpan{13, 13});
  CHECK(bio_labels(f.answer_spans, 14) == Numbers{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0});
  const Features two = lay_out(worked("z0 z1"), *tokenizer, test::hotpotqa_config(Parity::reference));
  CHECK(bio_labels(two.answer_spans, 14) == Numbers{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 1});
  CHECK(bio_labels(two.answer_spans, 13) == Numbers(13, 2));
}

TEST_CASE("behind a skipped sentence the reference's sentence numbers are too low, repaired ones are true",
          "[tasks][hotpotqa]") {
  const std::string text = R"({"_id": "s", "question": "q0 q1 q2", "answer": "z0", "supporting_facts": [["a0", 2]],
      "context": [["a0", ["x0 x1 x2", "y0 y1 y0 y1 y0 y1", "z0 z1"]]]})";
  const auto tokenizer = test::hotpotqa_tokenizer();
  for (const Parity parity : {Parity::reference, Parity::repaired}) {
    const data::Example example = converted(text, test::hotpotqa_config(parity, 12)).examples.at(0);
    const std::int64_t written = parity == Parity::reference ? 1 : 2;
    CHECK(std::get<Numbers>(example.at("global_sentence_ids")) == Numbers{-1, -1, -1, -1, -1, -1, 0, written});
    CHECK(std::get<Numbers>(example.at("global_true_sentence_ids")) == Numbers{-1, -1, -1, -1, -1, -1, 0, 2});
    // The text of an answer is looked up by the written number.
    CHECK(std::get<Words>(example.at("global_text")).back() ==
          (parity == Parity::reference ? "y0 y1 y0 y1 y0 y1" : "z0 z1"));
    CHECK(std::get<Numbers>(example.at("supporting_facts")) == Numbers{0, 0, 0, 0, 1, 1, 0, 1});
    CHECK(std::get<Numbers>(example.at("long_token_ids")).size() == 10);
    CHECK(number(example, "flags") == (kLongCut | kWarned));
  }
}

TEST_CASE("the letters of yes and no in the text are a label in the reference only", "[tasks][hotpotqa]") {
  const std::string text =
      R"({"_id": "n", "question": "q0", "answer": "no", "type": "other", "supporting_facts": [["a0", 0]],
      "context": [["a0", ["x0 known x1"]]]})";
  const data::Example reference = converted(text, test::hotpotqa_config(Parity::reference)).examples.at(0);
  CHECK(number(reference, "answer_types") == 2);
  CHECK(number(reference, "answer_begins") == 4);
  CHECK(number(reference, "flags") == kYesNoSubstringHit);
  const data::Example repaired = converted(text, test::hotpotqa_config(Parity::repaired)).examples.at(0);
  CHECK(number(repaired, "answer_types") == 2);
  CHECK(number(repaired, "answer_begins") == 0);
  CHECK(number(repaired, "answer_ends") == 0);
  CHECK(number(repaired, "flags") == 0);
  CHECK(converted(text, test::hotpotqa_config(Parity::repaired)).faults.counted() ==
        Words{"unknown_value type", "answer_inside_word"});
}

TEST_CASE("an answer in skipped text is a label in the reference, a drop when repaired", "[tasks][hotpotqa]") {
  // The second sentence does not fit; after it comes z1.
  const std::string text = R"({"_id": "c", "question": "q0", "answer": "y1", "supporting_facts": [["a0", 1]],
      "context": [["a0", ["x0", "y0 y1 y0 y1 y0 y0", "z0 z1"]]]})";
  const auto reference = converted(text, test::hotpotqa_config(Parity::reference, 8));
  REQUIRE(reference.examples.size() == 1);
  CHECK(number(reference.examples[0], "answer_begins") == 5);
  CHECK((number(reference.examples[0], "flags") & (kAnswerInCutText | kFactCutAway)) ==
        (kAnswerInCutText | kFactCutAway));
  CHECK(std::get<Numbers>(reference.examples[0].at("span_begins")) == Numbers{5, 7});
  CHECK(test::has_fault(reference.faults, data::Severity::warn, "answer_in_cut_text"));
  CHECK(test::has_fault(converted(text, test::hotpotqa_config(Parity::repaired, 8)).faults, data::Severity::drop,
                        "answer_in_cut_text"));
  PrepareConfig predict = test::hotpotqa_config(Parity::repaired, 8);
  predict.is_training = false;
  const auto kept = converted(text, predict);
  REQUIRE(kept.examples.size() == 1);
  CHECK(number(kept.examples[0], "answer_types") == -1);
  CHECK((number(kept.examples[0], "flags") & kLabelUnusable) != 0);
  CHECK(std::get<Numbers>(kept.examples[0].at("span_begins")).empty());
}

TEST_CASE("unlabelled records are rejected where labels are required and flagged where not", "[tasks][hotpotqa]") {
  const std::string text =
      R"({"_id": "u", "question": "q0", "context": [["a0", ["x0"]]], "type": "bridge", "level": "hard"})";
  CHECK(test::fault_words(converted(text, test::hotpotqa_config(Parity::repaired)).faults) ==
        Words{"reject label_missing answer", "reject label_missing supporting_facts"});
  PrepareConfig c = test::hotpotqa_config(Parity::repaired);
  c.labels_required = c.is_training = false;
  const auto result = converted(text, c);
  CHECK(test::fault_words(result.faults).empty());
  CHECK(number(result.examples.at(0), "flags") == kLabelMissing);
  CHECK(std::get<Numbers>(result.examples[0].at("supporting_facts")) == Numbers{0, 0, 0, 0, 0});
}

TEST_CASE("malformed records give the rows of the specification", "[tasks][hotpotqa]") {
  const PrepareConfig c = test::hotpotqa_config(Parity::repaired);
  const auto words = [&](const std::string& text) { return test::fault_words(converted(text, c).faults); };
  CHECK(words(R"({"_id": "b1", "question": "q?", "answer": "x", "supporting_facts": [["T", 5], ["U", 0]],
                  "context": [["T", ["only x."]]]})") == Words{"warn sf_sentence_range supporting_facts[0][1]",
                                                               "warn sf_title_unknown supporting_facts[1][0]",
                                                               "drop answer_not_found answer"});
  CHECK(words(R"({"_id": "b2", "question": "q?", "answer": "x", "supporting_facts": [["T"]],
                  "context": [["T", "not a list"]]})") ==
        Words{"reject context_malformed context[0][1]", "reject sf_malformed supporting_facts[0]"});
  CHECK(words(R"({"_id": "b1", "question": 7, "answer": "yes", "supporting_facts": [["T", 0]], "context": []})") ==
        Words{"reject wrong_type question", "reject context_empty context",
              "warn sf_title_unknown supporting_facts[0][0]"});
  CHECK(words(R"({})") == Words{"reject missing_field _id", "reject missing_field question",
                                "reject missing_field context", "reject label_missing answer",
                                "reject label_missing supporting_facts"});
  CHECK(words(R"({"_id": "", "question": "", "answer": " Yes", "supporting_facts": [["T", 0], ["T", 0], ["T", -1]],
                  "context": [["U", ["x", 3]], ["T", ["x"]], ["T", []], 5, [5, []], ["", [""]]]})") ==
        Words{"reject id_empty _id", "reject context_malformed context[0][1][1]", "warn duplicate_title context[2][0]",
              "reject context_malformed context[3]", "reject context_malformed context[4][0]",
              "warn yes_no_variant answer", "warn sf_duplicate supporting_facts[1]",
              "reject sf_malformed supporting_facts[2]", "warn unit_empty context[5][1][0]",
              "warn unit_empty context[5][0]"});
}

TEST_CASE("of thousands of facts each is told repeated, of an unknown title or out of range as it would be alone",
          "[tasks][hotpotqa]") {
  Json context = Json::array(), facts = Json::array();
  std::vector<std::int64_t> sentences;  // by i of title "t<i>": most sentences of a paragraph
  for (std::size_t i = 0; i < 600; ++i) {
    const std::size_t title = i % 500, count = i * 31 % 7;
    sentences.resize(std::max(sentences.size(), title + 1), -1);
    sentences[title] = std::max(sentences[title], static_cast<std::int64_t>(count));
    context.push_back({fmt::format("t{}", title), Json(Json::array_t(count, "x0"))});
  }
  std::vector<SupportingFact> seen;
  Words expected;
  for (std::size_t i = 0; i < 3000; ++i) {
    const std::size_t title = i * 17 % 550;
    const SupportingFact fact{fmt::format("t{}", title), static_cast<std::int64_t>(i * 13 % 9)};
    const std::string field = fmt::format("supporting_facts[{}]", i);
    if (std::find(seen.begin(), seen.end(), fact) != seen.end()) expected.push_back("warn sf_duplicate " + field);
    seen.push_back(fact);
    facts.push_back({fact.title, fact.sentence});
    if (title >= sentences.size()) {
      expected.push_back("warn sf_title_unknown " + field + "[0]");
    } else if (fact.sentence >= sentences[title]) {
      expected.push_back("warn sf_sentence_range " + field + "[1]");
    }
  }
  const Json raw = {
      {"_id", "m"}, {"question", "q0"}, {"answer", "x0"}, {"supporting_facts", facts}, {"context", context}};
  prepare::FaultList faults;
  const Record record = read_record(test::raw_record(raw.dump()), test::hotpotqa_config(Parity::repaired), faults);
  CHECK(*record.supporting_facts == seen);
  Words found = test::fault_words(faults);
  std::erase_if(found, [](const std::string& words) { return words.find("duplicate_title") != std::string::npos; });
  CHECK(found == expected);
}

TEST_CASE("labels that cannot be trained on drop the record, for prediction they are warned about",
          "[tasks][hotpotqa]") {
  const auto record = [](const std::string& answer, const std::string& title) {
    return R"({"_id": "d", "question": "q0", "answer": ")" + answer + R"(", "supporting_facts": [[")" + title +
           R"(", 0]], "context": [["a0", ["x0 x1"]]], "type": "bridge", "level": "hard"})";
  };
  PrepareConfig predict = test::hotpotqa_config(Parity::repaired);
  predict.is_training = false;
  const auto check = [&](const std::string& text, const std::string& code) {
    INFO(code);
    CHECK(test::has_fault(converted(text, test::hotpotqa_config(Parity::repaired)).faults, data::Severity::drop, code));
    const auto kept = converted(text, predict);
    CHECK(test::has_fault(kept.faults, data::Severity::warn, code));
    CHECK((number(kept.examples.at(0), "flags") & kLabelUnusable) != 0);
  };
  check(record("x1", "b0"), "no_sf_label");
  check(record("", "a0"), "answer_empty");
  check(record(" ", "a0"), "answer_empty");
  check(record("z0", "a0"), "answer_not_found");
  CHECK(test::fault_words(converted(record("yes", "a0"), test::hotpotqa_config(Parity::repaired)).faults).empty());
  const auto far = R"({"_id": "f", "question": "q0", "answer": "y0", "supporting_facts": [["a0", 1]],
                       "context": [["a0", ["x0 x1", "y1 y1 y1 y0"]]]})";
  CHECK(test::has_fault(converted(far, test::hotpotqa_config(Parity::reference, 6)).faults, data::Severity::drop,
                        "answer_beyond_limit"));
}

TEST_CASE("an answer that begins at the text's start with a space is rejected in the reference's reading only",
          "[tasks][hotpotqa]") {
  const std::string text = R"({"_id": "e", "question": "q0", "answer": " x0", "supporting_facts": [["a0", 0]],
      "context": [["a0", [" x0 x1 and x2"]]]})";
  CHECK(test::has_fault(converted(text, test::hotpotqa_config(Parity::reference)).faults, data::Severity::reject,
                        "answer_span_inverted"));
  const data::Example example = converted(text, test::hotpotqa_config(Parity::repaired)).examples.at(0);
  CHECK(number(example, "answer_begins") == 3);
  CHECK(number(example, "answer_ends") == 3);
}

TEST_CASE("occurrences of an answer without tokens are left out and told", "[tasks][hotpotqa]") {
  const auto text = [](const std::string& sentence, const std::string& answer) {
    return R"({"_id": "h", "question": "q0", "answer": ")" + answer + R"(", "supporting_facts": [["a0", 0]],
      "type": "bridge", "level": "hard", "context": [["a0", [")" +
           sentence + R"("]]]})";
  };
  const std::string zero_width = "\u200b";
  for (const Parity parity : {Parity::reference, Parity::repaired}) {
    PrepareConfig train = test::hotpotqa_config(parity), predict = train;
    predict.is_training = false;
    const std::string alone = text("x0 " + zero_width + " x1", zero_width);
    CHECK(test::fault_words(converted(alone, train).faults) == Words{"drop answer_span_inverted answer"});
    const auto kept = converted(alone, predict);
    CHECK(test::fault_words(kept.faults) == Words{"warn answer_span_inverted answer"});
    CHECK(number(kept.examples.at(0), "flags") == (kWarned | kLabelUnusable));
    CHECK(number(kept.examples[0], "answer_types") == -1);
    // The second occurrence is part of a word.
    const auto second = converted(text(zero_width + " x0 x1" + zero_width, zero_width), train);
    CHECK(test::fault_words(second.faults) == Words{"warn answer_span_inverted answer"});
    CHECK(number(second.examples.at(0), "answer_begins") == 4);
    CHECK(number(second.examples[0], "answer_ends") == 4);
    CHECK(std::get<Numbers>(second.examples[0].at("span_begins")) == Numbers{4});
  }
  PrepareConfig predict = test::hotpotqa_config(Parity::reference);
  predict.is_training = false;
  const auto reversed = converted(text(" x0 x1 and x2", " x0"), predict);
  CHECK(test::fault_words(reversed.faults) == Words{"warn answer_span_inverted answer"});
  CHECK((number(reversed.examples.at(0), "flags") & kLabelUnusable) != 0);
}

TEST_CASE("SentencePiece has no unigrams, and its data sets hold no such feature", "[tasks][hotpotqa]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "small.model", test::small_sentencepiece_model());
  PrepareConfig config = test::hotpotqa_config(Parity::repaired);
  config.is_training = false;
  config.special_ids = {0, 1, 2, 3, 4};
  const HotpotqaPreparation preparation(config, data::load_tokenizer(folder / "small.model"));
  const auto result = preparation.convert(test::raw_record(worked_record("x0")));
  REQUIRE(result.examples.size() == 1);
  const data::Example& example = result.examples[0];
  CHECK(std::get<Numbers>(example.at("long_tokens_to_unigrams")).empty());
  CHECK(std::get<Numbers>(example.at("long_sentence_ids")).size() > 1);
  EtcConfig model;
  model.vocab_size = 64;
  CHECK_NOTHROW(check_example(example, model, "a.h5"));

  data::DatasetInfo info;
  info.task = "hotpotqa";
  info.preprocess_config = preparation.preprocess_config();
  data::DatasetWriter writer(folder / "a.h5", hotpotqa::schema(), info);
  writer.append(example);
  writer.finish({}, 1, 0, 0);
  CHECK(!test::GoldenFile(folder / "a.h5").has("examples/long_tokens_to_unigrams"));
  CHECK(data::DatasetReader({folder / "a.h5"}, hotpotqa::schema()).read(0) == example);
}

TEST_CASE("a repeated id is told by the name of its member", "[tasks][hotpotqa]") {
  const test::TemporaryFolder folder;
  const std::string record = json_line(test::worked_hotpotqa_record("z1"));
  test::write_file(folder / "in.json", "[" + record + "," + record + "]");
  prepare::RunOptions options;
  options.inputs = {folder / "in.json"};
  options.output = folder / "out.h5";
  options.report = folder / "report.jsonl";
  options.split = "train";
  const auto config = test::hotpotqa_config(Parity::repaired);
  CHECK(prepare::run(HotpotqaPreparation(config, test::hotpotqa_tokenizer()), options).rejected == 1);
  const auto faults = data::DatasetReader({options.output}, hotpotqa::schema()).faults();
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].code == "duplicate_id");
  CHECK(faults[0].field == "_id");
}

TEST_CASE("an empty question and skipped text are warned about", "[tasks][hotpotqa]") {
  const auto result = converted(R"({"_id": "q", "question": "", "answer": "x0", "supporting_facts": [["a0", 0]],
      "type": "bridge", "level": "hard", "context": [["a0", ["x0", "y0"]]]})",
                                test::hotpotqa_config(Parity::repaired, 3));
  CHECK(test::fault_words(result.faults) == Words{"warn question_empty question", "warn text_skipped context"});
  CHECK(result.examples.at(0).size() == hotpotqa::schema().features.size());
}

TEST_CASE("settings that cannot be meant are usage errors", "[tasks][hotpotqa]") {
  const auto tokenizer = test::hotpotqa_tokenizer();
  const Json settings = prepare_settings().defaults();
  const auto read = [&](const Json& given) {
    PrepareConfig config = read_prepare_config(given, prepare::Labels::required);
    resolve_special_ids(config, *tokenizer);
    return config;
  };
  const auto message = [&](const char* key, const Json& value) {
    Json changed = settings;
    changed[key] = value;
    try {
      read(changed);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(read(settings).special_ids.cls == 101);
  CHECK(message("long_seq_len", 0).starts_with("etc prepare: long_seq_len: expected an integer from 1 to"));
  CHECK(message("global_seq_len", 40000).find("32767") != std::string::npos);
  CHECK(message("parity", "repared") ==
        "etc prepare: parity: expected reference or repaired, got repared (did you mean repaired?)");
  CHECK(message("is_training", 1) == "etc prepare: is_training: expected true or false, got 1");
  CHECK(message("special_ids", {{"queston", 3}}) ==
        "etc prepare: special_ids: unknown key queston (did you mean question?)");
  CHECK(message("special_ids", {{"question", 5000}}).find("below the vocabulary's 126") != std::string::npos);
}
