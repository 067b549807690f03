// Damaged raw files and odd values anywhere in a record give a fault with a place and a message, or windows that a data
// set accepts.
#include "data/dataset_info.h"
#include "etc_core/base/error.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/nq/feed.h"
#include "tasks/nq/prepare.h"
#include "tests/tasks/nq/small_records.h"
#include "tests/tasks/raw_mutants.h"

using namespace etc;
using nq::InputForm;

namespace {

// Records of both forms, with escapes, unknown keys, empty lines and several annotations.
std::string base_text() {
  Json odd = test::worked_nq_record();
  odd["example_id"] = std::numeric_limits<std::int64_t>::min();
  odd["document_tokens"][5]["token"] = "\u00e9\u0301\u4e2d1,000";
  odd["annotations"].push_back(odd["annotations"][0]);
  odd["annotations"][0].update({{"yes_no_answer", "no"}, {"short_answers", Json::array()}});
  odd["more"] = {{"of", "it"}};
  Json simplified = test::simplified_nq_record(test::worked_nq_record());
  simplified["example_id"] = "12";
  return json_line(test::worked_nq_record()) + "\n\n" + odd.dump(-1, ' ', true) + "\n" + json_line(simplified) + "\n";
}

// One value anywhere in the record replaced by something else.
std::string with_odd_value(const Json& record, std::uint64_t seed) {
  std::vector<Json> values = test::odd_values();
  for (const Json& value : std::vector<Json>{0,
                                             8,
                                             17,
                                             1000000000000,
                                             0.5,
                                             std::numeric_limits<std::int64_t>::min(),
                                             std::numeric_limits<std::int64_t>::max(),
                                             " ",
                                             "YES",
                                             "</",
                                             "<P>",
                                             {{"start_token", 3}, {"end_token", 3}}}) {
    values.push_back(value);
  }
  return json_line(test::with_odd_value(record, seed, values)) + "\n";
}

std::vector<std::unique_ptr<prepare::JsonPreparation>> preparations() {
  std::vector<std::unique_ptr<prepare::JsonPreparation>> all;
  for (const bool train : {true, false}) {
    for (const InputForm form : {InputForm::original, InputForm::simplified}) {
      nq::PrepareConfig config;
      config.is_train = train;
      config.input_form = form;
      config.parity = train ? nq::Parity::reference : nq::Parity::repaired;
      config.seq_len = 16;
      config.question_len = 2;
      config.global_seq_len = 6;
      config.stride = 40;  // beyond the window
      all.push_back(std::make_unique<nq::NqPreparation>(config, test::small_nq_tokenizer()));
    }
  }
  return all;
}

void run_mutants(std::uint64_t count) {
  EtcConfig model;
  model.vocab_size = 200;
  test::RawChecks checks;
  checks.example = [&](const data::Example& example) {
    nq::check_example(example, model, "mutant");  // the feed's own check
  };
  checks.record = [](const prepare::Converted& converted) {
    if (converted.faults.rejected()) return;
    REQUIRE(converted.gold);
    CHECK(!converted.examples.empty());
  };
  checks.fault = [](const data::InputFault& fault, const std::string& file) {
    // With one record per line only two faults end a file: a truncated gzip stream, or a last line that ends inside its
    // record.
    const bool open_line = !file.ends_with('\n') && fault.code() == "json_syntax";
    CHECK((open_line || fault.code() == "gzip_truncated"));
  };
  checks.data = [](const data::DatasetReader& reader) {
    CHECK(reader.info().max_long_len <= 16);
    CHECK(reader.info().max_global_len <= 6);
  };
  const Json original = test::worked_nq_record(), simplified = test::simplified_nq_record(original);
  const auto odd = [&](std::uint64_t seed) { return with_odd_value(seed % 4 == 0 ? simplified : original, seed); };
  test::RawMutants(preparations(), checks).run(base_text(), odd, count);
}

}  // namespace

TEST_CASE("damaged raw files give faults or valid windows", "[tasks][nq]") {
  run_mutants(200);
}

TEST_CASE("many more damaged raw files give faults or valid windows", "[tasks][nq][slow]") {
  run_mutants(5000);
}
