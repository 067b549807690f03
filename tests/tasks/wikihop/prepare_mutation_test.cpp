// Damaged raw files and odd values in every place: a fault with a place and a message, or examples a data set takes.
#include "etc_core/base/error.h"
#include "etc_core/base/random.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/wikihop/schema.h"
#include "tests/support/catch.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"
#include "tests/tasks/raw_mutants.h"
#include "tests/tasks/wikihop/small_records.h"

using namespace etc;

namespace {

// Three records with everything a file may hold: unknown keys, escapes, white space, equal candidates.
std::string base_text() {
  Json odd = test::small_record(2);
  odd["annotations"] = {{"follows", "single"}};
  odd["supports"] = {"\u201cOslo\u201d is \u00a0 Norway\u2026 It snows \u0301.", "",
                     "New York, new york. (york) U.S. he"};
  odd["candidates"] = {"new york", "york", " Norway", "norway", "u.s.", "\u03c9"};
  return test::array_of({test::small_record(1).dump(2), odd.dump(-1, ' ', true), json_line(test::worked_record())});
}

// One value anywhere in the array replaced by something else.
std::string with_odd_value(const std::string& text, std::uint64_t seed) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    1e300,
                                    std::numeric_limits<std::uint64_t>::max(),
                                    "",
                                    " \t\u00a0",
                                    std::string("\0", 1),
                                    "\u200b",
                                    "\ufffd",
                                    std::string(3000, 'x'),
                                    std::string(500, '.'),
                                    "new york norway oslo",
                                    Json::array(),
                                    Json::object(),
                                    {"norway", "norway"},
                                    {{"id", {{"id", 5}}}},
                                    std::vector<std::string>(300, "a b"),
                                    std::vector<std::string>(300, "")};
  return json_line(test::with_odd_value(Json::parse(text), seed, values));
}

class Mutants {
 public:
  Mutants() : writer_(folder_ / "out.h5", wikihop::schema(), info()) {
    for (const bool labels : {true, false}) {
      for (const auto parity : {wikihop::Parity::reference, wikihop::Parity::repaired}) {
        wikihop::PrepareConfig config;
        config.parity = parity;
        config.labels_required = labels;
        config.long_seq_len = 60;
        config.global_seq_len = 24;
        config.max_num_sentences = 7;
        preparations_.push_back(
            std::make_unique<wikihop::WikihopPreparation>(config, test::small_tokenizer(), data::load_splitter("icu")));
      }
    }
  }

  void pass(const std::string& bytes, std::uint64_t seed) {
    const auto path = folder_ / "mutant.json";
    write_file_atomically(path, bytes);
    std::int64_t next = 0;
    prepare::PassCallbacks callbacks;
    callbacks.progress = [](std::int64_t) {};
    callbacks.record = [&](prepare::PassRecord&& record) {
      CHECK(record.index == next++);
      CHECK(record.converted.faults.rejected() == record.converted.examples.empty());
      for (const data::Fault& row : record.converted.faults.rows()) {
        CHECK((!row.code.empty() && !row.message.empty()));
      }
      for (const data::Example& example : record.converted.examples) take(example);
    };
    const prepare::PassEnd end = pass_over_file(*preparations_[seed % preparations_.size()], path, callbacks);
    records_ += next;
    if (!end.fault) return;
    ++faults_;
    CHECK(end.fault_record == next);
    CHECK(end.fault->where().byte_offset >= 0);
    CHECK(std::string(end.fault->what()).starts_with("byte "));
  }

  // Everything taken can be read back.
  void finish() {
    writer_.finish({}, examples_, 0, 0);
    const data::DatasetReader reader({folder_ / "out.h5"}, wikihop::schema());
    CHECK(reader.size() == examples_);
    CHECK(reader.info().max_long_len <= 60);
    CHECK(reader.info().max_global_len <= 24);
    CHECK(examples_ > 0);
    CHECK(faults_ > 0);
    CHECK(records_ > examples_);
  }

 private:
  static data::DatasetInfo info() {
    data::DatasetInfo result;
    result.task = "wikihop";
    result.split = "train";
    result.vocab_sha256 = std::string(64, '0');
    result.preprocess_config = Json::object();
    result.unicode_version = "0";
    return result;
  }

  void take(const data::Example& example) {
    const auto number = [&](const char* name) { return std::get<std::int64_t>(example.at(name)); };
    const auto& links = std::get<std::vector<std::int64_t>>(example.at("l2g_linked_ids"));
    const std::int64_t candidates = number("num_candidates");
    bool in_range = number("label_id") >= -1 && number("label_id") < candidates;
    for (const std::int64_t link : links) in_range = in_range && link >= -1 && link < candidates;
    CHECK(in_range);
    writer_.append(example);
    ++examples_;
  }

  test::TemporaryFolder folder_;
  std::vector<std::unique_ptr<wikihop::WikihopPreparation>> preparations_;
  data::DatasetWriter writer_;
  std::int64_t records_ = 0, examples_ = 0, faults_ = 0;
};

void run_mutants(std::uint64_t count) {
  const std::string text = base_text();
  const std::string packed = test::gzip(text);
  Mutants mutants;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    if (seed % 8 == 0) {
      mutants.pass(test::mutate(packed, seed), seed / 8);
    } else if (seed % 2 == 0) {
      mutants.pass(with_odd_value(text, seed), seed / 2);
    } else {
      mutants.pass(test::mutate(text, seed), seed / 2);
    }
  }
  mutants.finish();
}

}  // namespace

TEST_CASE("damaged raw files give faults or valid examples", "[wikihop]") {
  run_mutants(200);
}

TEST_CASE("many more damaged raw files give faults or valid examples", "[wikihop][slow]") {
  run_mutants(5000);
}
