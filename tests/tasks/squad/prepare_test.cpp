// Preparation of valid and invalid questions.
#include "tasks/squad/prepare.h"

#include <limits>

#include "tasks/squad/schema.h"
#include "tasks/squad/windows.h"
#include "tests/data/text/small_byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/support/written_files.h"
#include "tests/tasks/squad/small_questions.h"

using namespace etc;
using namespace etc::squad;
using test::converted_question;
using test::small_question;
using test::small_squad_config;

namespace {

using Numbers = std::vector<std::int64_t>;

const Numbers& list(const data::Example& example, const char* name) {
  return std::get<Numbers>(example.at(name));
}

Numbers target(const data::Example& example) {
  return {std::get<std::int64_t>(example.at("start_position")), std::get<std::int64_t>(example.at("end_position"))};
}

std::vector<std::string> faults(Json question, const PrepareConfig& config = small_squad_config()) {
  return test::fault_words(converted_question(question, config).faults);
}

}  // namespace

TEST_CASE("a question becomes a window with segments, words and the answer's place", "[squad]") {
  const auto converted = converted_question(small_question("a (unknown). b", "unknown", 3));
  REQUIRE(converted.examples.size() == 1);
  const data::Example& window = converted.examples[0];
  // CLS who q ? SEP a ( un ##known ) . b SEP
  CHECK(list(window, "token_ids") == Numbers{2, 4, 6, 5, 3, 7, 14, 12, 13, 15, 17, 8, 3});
  CHECK(list(window, "segment_ids") == Numbers{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(list(window, "token_words") == Numbers{-1, -1, -1, -1, -1, 0, 1, 1, 1, 1, 1, 2, -1});
  CHECK(list(window, "max_context") == Numbers{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0});
  CHECK(std::get<std::vector<std::string>>(window.at("words")) == std::vector<std::string>{"a", "(unknown).", "b"});
  CHECK(target(window) == Numbers{7, 8});
  REQUIRE(converted.gold);
  CHECK(std::get<std::vector<std::string>>(converted.gold->at("answers")) == std::vector<std::string>{"unknown"});
}

TEST_CASE("a window without the whole answer is trained on CLS", "[squad]") {
  const auto converted = converted_question(small_question("a b c d e a b c", "e", 8), small_squad_config(10, 2));
  // Four pieces a window: a b c d | c d e a | e a b c
  REQUIRE(converted.examples.size() == 3);
  CHECK(target(converted.examples[0]) == Numbers{0, 0});
  CHECK(target(converted.examples[1]) == Numbers{7, 7});
  CHECK(target(converted.examples[2]) == Numbers{5, 5});
  CHECK(std::get<std::int64_t>(converted.examples[2].at("first_word")) == 4);
}

TEST_CASE("evaluation needs no answers and gives no targets", "[squad]") {
  PrepareConfig config = small_squad_config();
  config.is_training = false;
  Json question = small_question("a b", "a", 0);
  question["question"].erase("answers");
  const auto converted = converted_question(question, config);
  CHECK(test::fault_words(converted.faults).empty());
  CHECK(target(converted.examples.at(0)) == Numbers{kNoTarget, kNoTarget});
}

TEST_CASE("an impossible question is trained on CLS in version 2 and refused in version 1.1", "[squad]") {
  Json question = small_question("a b", "a", 0);
  question["question"]["answers"] = Json::array();
  question["question"]["is_impossible"] = true;
  CHECK(faults(question) == std::vector<std::string>{"reject answer_count question.answers"});
  PrepareConfig config = small_squad_config();
  config.version_2 = true;
  CHECK(target(converted_question(question, config).examples.at(0)) == Numbers{0, 0});
}

TEST_CASE("answers that cannot be trained on are told apart", "[squad]") {
  using Words = std::vector<std::string>;
  CHECK(faults(small_question("a b c", "c", 0)) == Words{"drop answer_not_found question.answers[0]"});
  CHECK(faults(small_question("  a b", "a", 0)) == Words{"drop answer_not_found question.answers[0]"});
  CHECK(faults(small_question("a b", "", 0)) == Words{"reject answer_empty question.answers[0].text"});
  CHECK(faults(small_question("a b", "b", 9)) == Words{"reject answer_offset question.answers[0].answer_start"});
  CHECK(faults(small_question("a b", "b", -1)) == Words{"reject answer_offset question.answers[0].answer_start"});
  Json two = small_question("a b", "b", 2);
  two["question"]["answers"].push_back({{"text", "a"}, {"answer_start", 0}});
  CHECK(faults(two) == Words{"reject answer_count question.answers"});
  PrepareConfig first = small_squad_config();
  first.first_answer = true;
  CHECK(faults(two, first).empty());
  // Answers are checked only for training.
  PrepareConfig evaluation = small_squad_config();
  evaluation.is_training = false;
  for (const Json& question : {small_question("a b c", "c", 0), small_question("a b", "b", 9), two}) {
    CHECK(faults(question, evaluation).empty());
  }
}

TEST_CASE("an answer one character too early is kept, since its words hold it", "[squad]") {
  CHECK(target(converted_question(small_question("a un c", "un", 1)).examples.at(0)) == Numbers{6, 6});
}

TEST_CASE("a text without words has no window, but a row of gold", "[squad]") {
  PrepareConfig config = small_squad_config();
  config.is_training = false;
  const auto converted = converted_question(small_question(" \t", "a", 0), config);
  CHECK(converted.examples.empty());
  CHECK(converted.gold.has_value());
  CHECK(test::fault_words(converted.faults) == std::vector<std::string>{"warn context_empty context"});
}

TEST_CASE("an empty question leaves CLS and SEP", "[squad]") {
  Json question = small_question("a b", "b", 2);
  question["question"]["question"] = "";
  CHECK(list(converted_question(question).examples.at(0), "token_ids") == Numbers{2, 3, 7, 8, 3});
}

TEST_CASE("a question that is cut is a fault to be listed on request", "[squad]") {
  Json question = small_question("a b", "b", 2);
  question["question"]["question"] = "a b a";
  PrepareConfig config = small_squad_config();
  config.question_len = 2;
  const auto converted = converted_question(question, config);
  CHECK(converted.faults.rows().empty());
  REQUIRE(converted.faults.quiet_rows().size() == 1);
  CHECK(converted.faults.quiet_rows()[0].code == "question_truncated");
  CHECK(converted.faults.quiet_rows()[0].message == "3 pieces, 2 are kept");
  config.question_len = 3;
  CHECK(converted_question(question, config).faults.quiet_rows().empty());
}

TEST_CASE("members that are missing or of another type are named", "[squad]") {
  using Words = std::vector<std::string>;
  CHECK(faults(Json{{"title", "t"}}) == Words{"reject missing_field context", "reject missing_field question"});
  Json question = small_question("a b", "b", 2);
  question["question"]["id"] = 4;
  CHECK(faults(question) == Words{"reject wrong_type question.id"});
  question["question"]["id"] = "1";
  question["question"]["answers"] = Json::array({5});
  CHECK(faults(question) == Words{"reject wrong_type question.answers[0]"});
  question["question"]["answers"] = Json::array({{{"text", "b"}, {"answer_start", "2"}}});
  CHECK(faults(question) == Words{"reject wrong_type question.answers[0].answer_start"});
  question["question"]["is_impossible"] = "no";
  CHECK(faults(question).front() == "reject wrong_type question.is_impossible");
}

TEST_CASE("a window must have room for text behind the question", "[squad]") {
  Json settings = prepare_settings().defaults();
  settings["seq_len"] = 67;
  CHECK_THROWS_WITH(read_prepare_config(settings, prepare::Labels::required),
                    "etc prepare: seq_len: expected more than question_len + 3 = 67, got 67 (a window holds CLS, the "
                    "question, two separators and some text)");
}

TEST_CASE("a byte-level vocabulary needs room for one separator more, whatever is left of the question", "[squad]") {
  const test::TemporaryFolder folder;
  test::small_byte_bpe(folder.path());
  const auto prepared = [&](std::int64_t seq_len, std::int64_t question_len) {
    Json settings = prepare_settings().defaults();
    settings.update({{"seq_len", seq_len}, {"question_len", question_len}});
    const auto preparation = make_preparation(settings, folder / "vocab.json", prepare::Labels::required);
    data::RecordSlice record;
    record.text = small_question("in the", "the", 3).dump();
    return preparation->convert_record(record).examples.size();
  };
  for (const std::int64_t question_len : {0, 1, 2}) {
    CHECK_THROWS_WITH(prepared(question_len + 4, question_len),
                      Catch::Contains("expected more than question_len + 4") && Catch::Contains("three separators"));
    CHECK(prepared(question_len + 5, question_len) > 1);
  }
}

TEST_CASE("windows without room for a piece are an error, not an endless list", "[squad]") {
  CHECK_THROWS_WITH(cut_windows(3, 0, 128), Catch::Contains("expected one piece at least, got 0"));
  CHECK(cut_windows(0, 1, 128).empty());
}

TEST_CASE("an answer's place at either end of 64 bits is outside of the context", "[squad]") {
  using Words = std::vector<std::string>;
  for (const std::int64_t start :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    CHECK(faults(small_question("a b", "a b", start)) ==
          Words{"reject answer_offset question.answers[0].answer_start"});
  }
  Json question = small_question("a b", "a b", 0);
  question["question"]["answers"][0]["answer_start"] = std::numeric_limits<std::uint64_t>::max();
  CHECK(faults(question) == Words{"reject answer_offset question.answers[0].answer_start"});
}

TEST_CASE("a SentencePiece vocabulary is refused, since answers are words", "[squad]") {
  const test::WrittenFiles files;
  const auto model = files.write("spiece.model", test::small_sentencepiece_model());
  CHECK_THROWS_WITH(make_preparation(prepare_settings().defaults(), model, prepare::Labels::required),
                    "etc prepare: --vocab " + model.string() +
                        ": task squad needs a WordPiece or byte-level vocabulary (a vocab.txt or vocab.json), got a "
                        "sentencepiece model, whose pieces "
                        "are no parts of the words that answers are made of");
}
