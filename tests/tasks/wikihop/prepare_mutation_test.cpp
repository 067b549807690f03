// Damaged raw files and odd values anywhere in a record give a fault with a place and a message, or examples that a
// data set accepts.
#include "data/dataset_info.h"
#include "tests/tasks/raw_mutants.h"
#include "tests/tasks/wikihop/small_records.h"

using namespace etc;

namespace {

// Three records with everything that a file may contain: unknown keys, escapes, white space, equal candidates.
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
  std::vector<Json> values = test::odd_values();
  values.insert(values.end(), {"new york norway oslo", Json::array({"norway", "norway"})});
  return json_line(test::with_odd_value(Json::parse(text), seed, values));
}

std::vector<std::unique_ptr<prepare::JsonPreparation>> preparations() {
  std::vector<std::unique_ptr<prepare::JsonPreparation>> all;
  for (const bool labels : {true, false}) {
    for (const auto parity : {wikihop::Parity::reference, wikihop::Parity::repaired}) {
      wikihop::PrepareConfig config;
      config.parity = parity;
      config.labels_required = labels;
      config.long_seq_len = 60;
      config.global_seq_len = 24;
      config.max_num_sentences = 7;
      all.push_back(
          std::make_unique<wikihop::WikihopPreparation>(config, test::small_tokenizer(), data::load_splitter("icu")));
    }
  }
  return all;
}

void check_links(const data::Example& example) {
  const auto number = [&](const char* name) { return std::get<std::int64_t>(example.at(name)); };
  const auto& links = std::get<std::vector<std::int64_t>>(example.at("l2g_linked_ids"));
  const std::int64_t candidates = number("num_candidates");
  bool in_range = number("label_id") >= -1 && number("label_id") < candidates;
  for (const std::int64_t link : links) in_range = in_range && link >= -1 && link < candidates;
  CHECK(in_range);
}

void run_mutants(std::uint64_t count) {
  test::RawChecks checks{check_links};
  checks.record = [](const prepare::Converted& converted) {
    CHECK(converted.faults.rejected() == converted.examples.empty());
  };
  checks.data = [](const data::DatasetReader& reader) {
    CHECK(reader.info().max_long_len <= 60);
    CHECK(reader.info().max_global_len <= 24);
  };
  const std::string text = base_text();
  const auto odd = [&](std::uint64_t seed) { return with_odd_value(text, seed); };
  test::RawMutants(preparations(), checks).run(text, odd, count);
}

}  // namespace

TEST_CASE("damaged raw files give faults or valid examples", "[wikihop]") {
  run_mutants(200);
}

TEST_CASE("many more damaged raw files give faults or valid examples", "[wikihop][slow]") {
  run_mutants(5000);
}
