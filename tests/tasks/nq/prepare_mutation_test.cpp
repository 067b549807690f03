// Damaged raw files and odd values in every place: a fault with a place and a message, or windows a data set takes.
#include "etc_core/base/error.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/nq/feed.h"
#include "tasks/nq/prepare.h"
#include "tasks/nq/schema.h"
#include "tasks/prepare/file_pass.h"
#include "tests/support/catch.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"
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
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    8,
                                    17,
                                    1000000000000,
                                    1e300,
                                    0.5,
                                    std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::uint64_t>::max(),
                                    "",
                                    " ",
                                    "YES",
                                    "</",
                                    "<P>",
                                    std::string("\0", 1),
                                    "\u200b",
                                    std::string(3000, 'x'),
                                    Json::array(),
                                    Json::object(),
                                    {{"start_token", 3}, {"end_token", 3}},
                                    std::vector<std::string>(300, "a b")};
  return json_line(test::with_odd_value(record, seed, values)) + "\n";
}

class Mutants {
 public:
  Mutants() : writer_(folder_ / "out.h5", nq::schema(false), info()) {
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
        preparations_.push_back(std::make_unique<nq::NqPreparation>(config, test::small_nq_tokenizer()));
      }
    }
  }

  void pass(const std::string& bytes, std::uint64_t seed) {
    const auto path = folder_ / "mutant.jsonl";
    write_file_atomically(path, bytes);
    std::int64_t next = 0;
    prepare::PassCallbacks callbacks;
    callbacks.progress = [](std::int64_t) {};
    callbacks.record = [&](prepare::PassRecord&& record) {
      CHECK(record.index == next++);
      const prepare::FaultList& faults = record.converted.faults;
      for (const data::Fault& row : faults.rows()) CHECK((!row.code.empty() && !row.message.empty()));
      if (faults.rejected()) {
        ++faults_;
        return;
      }
      REQUIRE(record.converted.gold);
      CHECK(!record.converted.examples.empty());
      for (const data::Example& example : record.converted.examples) take(example);
      writer_.append_gold(*record.converted.gold);
      ++records_;
    };
    const prepare::PassEnd end = pass_over_file(*preparations_[seed % preparations_.size()], path, callbacks);
    if (!end.fault) return;
    ++faults_;
    // Of lines nothing else ends a file: a gzip stream that stops, or a last line that stops inside its record.
    const bool open_line = !bytes.ends_with('\n') && end.fault->code() == "json_syntax";
    CHECK((open_line || end.fault->code() == "gzip_truncated"));
    CHECK(end.fault_record == next);
  }

  // Everything taken can be read back.
  void finish() {
    writer_.finish({}, records_, 0, 0);
    const data::DatasetReader reader({folder_ / "out.h5"}, nq::schema(false));
    CHECK(reader.size() == examples_);
    CHECK(reader.gold_size() == records_);
    CHECK(reader.info().max_long_len <= 16);
    CHECK(reader.info().max_global_len <= 6);
    CHECK(examples_ > 0);
    CHECK(faults_ > 0);
  }

 private:
  static data::DatasetInfo info() {
    data::DatasetInfo result;
    result.task = "nq";
    result.split = "train";
    result.vocab_sha256 = std::string(64, '0');
    result.preprocess_config = Json::object();
    result.unicode_version = "0";
    return result;
  }

  void take(const data::Example& example) {
    EtcConfig model;
    model.vocab_size = 200;
    nq::check_example(example, model, "mutant");  // what the feed takes
    writer_.append(example);
    ++examples_;
  }

  test::TemporaryFolder folder_;
  std::vector<std::unique_ptr<nq::NqPreparation>> preparations_;
  data::DatasetWriter writer_;
  std::int64_t records_ = 0, examples_ = 0, faults_ = 0;
};

void run_mutants(std::uint64_t count) {
  const std::string text = base_text();
  const std::string packed = test::gzip(text);
  const Json original = test::worked_nq_record(), simplified = test::simplified_nq_record(original);
  Mutants mutants;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    if (seed % 8 == 0) {
      mutants.pass(test::mutate(packed, seed), seed / 8);
    } else if (seed % 2 == 0) {
      mutants.pass(with_odd_value(seed % 4 == 0 ? simplified : original, seed), seed / 2);
    } else {
      mutants.pass(test::mutate(text, seed), seed / 2);
    }
  }
  mutants.finish();
}

}  // namespace

TEST_CASE("damaged raw files give faults or valid windows", "[tasks][nq]") {
  run_mutants(200);
}

TEST_CASE("many more damaged raw files give faults or valid windows", "[tasks][nq][slow]") {
  run_mutants(5000);
}
