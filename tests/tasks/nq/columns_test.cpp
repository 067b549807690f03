// Reading document_tokens by columns gives the same windows and, word for word, the same faults as reading them as JSON
// values.
#include "etc_core/base/error.h"
#include "tasks/nq/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/mutate.h"
#include "tests/tasks/nq/small_records.h"

using namespace etc;

namespace {

using Preparations = std::vector<std::unique_ptr<nq::NqPreparation>>;

// Preparations for training and for evaluation, of both input forms.
Preparations make_preparations() {
  Preparations all;
  for (const bool is_train : {true, false}) {
    for (const nq::InputForm form : {nq::InputForm::original, nq::InputForm::simplified}) {
      nq::PrepareConfig config;
      config.is_train = is_train;
      config.input_form = form;
      config.seq_len = 16;
      config.question_len = 2;
      config.global_seq_len = 6;
      config.stride = 8;
      all.push_back(std::make_unique<nq::NqPreparation>(config, test::small_nq_tokenizer()));
    }
  }
  return all;
}

struct Outcome {
  prepare::Converted converted;
  std::vector<std::string> faults;
  bool columns = false;
};

Outcome outcome_of(const nq::NqPreparation& preparation, const std::string& text, const data::FlatLists& flat) {
  Outcome outcome;
  data::RecordSlice slice;
  slice.text = text;
  try {
    const data::JsonRecord raw = data::parse_record(slice, preparation.unread_members(), flat);
    if (raw.value.is_object()) outcome.converted = preparation.convert(raw);
    outcome.columns = !raw.columns.empty();
  } catch (const data::InputFault& fault) {
    outcome.faults.push_back(fault.code() + " " + fault.what());
  }
  const prepare::FaultList& faults = outcome.converted.faults;
  for (const auto* rows : {&faults.rows(), &faults.quiet_rows()}) {
    for (const data::Fault& row : *rows) {
      outcome.faults.push_back(
          fmt::format("{} {} {}: {}", data::severity_text(row.severity), row.code, row.field, row.message));
    }
  }
  for (const std::string& what : faults.counted()) outcome.faults.push_back(what);
  return outcome;
}

// Checks that both ways of reading agree; returns whether the tokens were read by columns.
bool same_by_columns(const std::string& text) {
  CAPTURE(text);
  static const Preparations preparations = make_preparations();
  bool columns = false;
  for (const auto& preparation : preparations) {
    const Outcome ours = outcome_of(*preparation, text, preparation->flat_lists());
    const Outcome theirs = outcome_of(*preparation, text, {});
    CHECK(ours.faults == theirs.faults);
    CHECK(ours.converted.id == theirs.converted.id);
    CHECK(ours.converted.examples == theirs.converted.examples);
    CHECK(ours.converted.gold == theirs.converted.gold);
    columns = ours.columns;
  }
  return columns;
}

std::string with_token(const Json& token) {
  Json record = test::worked_nq_record();
  record["document_tokens"][5] = token;
  return json_line(record);
}

}  // namespace

TEST_CASE("tokens of a sound record are read by columns, whatever their bytes are", "[tasks][nq]") {
  CHECK(same_by_columns(json_line(test::worked_nq_record())));
  CHECK(same_by_columns(with_token({{"token", "\u00e9\u0301\u4e2d"}, {"html_token", false}})));
  CHECK(same_by_columns(with_token({{"token", ""}, {"html_token", true}, {"start_byte", "x"}, {"end_byte", nullptr}})));
  Json record = test::worked_nq_record();
  record["document_tokens"] = Json::array();
  CHECK(same_by_columns(json_line(record)));
}

TEST_CASE("tokens with anything wrong are reported as ever", "[tasks][nq]") {
  for (const Json& token :
       {Json(nullptr), Json(5), Json("Lake"), Json::array(), Json::object(), Json{{"token", "lake"}},
        Json{{"html_token", false}}, Json{{"token", 1}, {"html_token", false}},
        Json{{"token", "lake"}, {"html_token", 0}}, Json{{"token", nullptr}, {"html_token", "false"}},
        Json{{"token", "lake"}, {"html_token", false}, {"more", 1}}}) {
    CHECK_FALSE(same_by_columns(with_token(token)));
  }
  Json record = test::worked_nq_record();
  record["document_tokens"] = "text";
  CHECK_FALSE(same_by_columns(json_line(record)));
  record.erase("document_tokens");
  CHECK_FALSE(same_by_columns(json_line(record)));
  record["document_text"] = "<P> lake";
  CHECK_FALSE(same_by_columns(json_line(record)));
}

TEST_CASE("damaged records give the same by columns", "[tasks][nq]") {
  constexpr std::uint64_t kMutants = 300;
  const std::string text = json_line(test::worked_nq_record());
  std::uint64_t columns = 0;
  for (std::uint64_t seed = 0; seed < kMutants; ++seed) {
    if (same_by_columns(test::mutate(text, seed))) ++columns;
  }
  CHECK(columns > 0);
  CHECK(columns < kMutants);
}
