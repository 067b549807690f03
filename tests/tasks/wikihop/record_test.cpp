// Records with long lists, against a comparison of every pair of their members.
#include "tasks/wikihop/record.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/tasks/raw_records.h"

using namespace etc;
using namespace etc::wikihop;

TEST_CASE("of thousands of candidates each repeated one names the first it equals", "[wikihop]") {
  Json candidates = Json::array();
  std::vector<std::string> expected, seen;
  for (std::size_t i = 0; i < 4000; ++i) {
    const std::string candidate = fmt::format("c{}", i * 7919 % 3001);
    const auto equal = std::find(seen.begin(), seen.end(), candidate);
    if (equal != seen.end()) {
      expected.push_back(fmt::format("candidates[{}]: equals candidates[{}] after trimming and lower-casing", i,
                                     equal - seen.begin()));
    }
    seen.push_back(candidate);
    candidates.push_back(i % 2 == 0 ? candidate : " " + fmt::format("C{}", candidate.substr(1)) + "\n");
  }
  const Json raw = {
      {"id", "WH_dev_1"}, {"query", "q"}, {"answer", "c0"}, {"candidates", candidates}, {"supports", {"c0"}}};
  prepare::FaultList faults;
  const Record record = read_record(test::raw_record(raw.dump()), {}, faults);
  std::vector<std::string> found;
  for (const data::Fault& row : faults.rows()) {
    CHECK(row.code == "candidate_duplicate");
    found.push_back(row.field + ": " + row.message);
  }
  CHECK(found == expected);
  CHECK(found.size() == 999);
  CHECK(record.candidates == seen);
  CHECK(record.equal_candidates);
}

TEST_CASE("of thousands of lost characters those that the record's escapes made are no warnings", "[wikihop]") {
  std::string supports;
  for (int i = 0; i < 2000; ++i)
    supports += fmt::format("{}\"{} x\"", i == 0 ? "" : ", ", i % 2 == 0 ? "\\ud800" : "\uFFFD");
  prepare::FaultList faults;
  read_record(
      test::raw_record(R"({"id": "WH_dev_1", "query": "q", "answer": "a", "candidates": ["a", "b"], "supports": [)" +
                       supports + "]}"),
      {}, faults);
  std::vector<std::string> expected;
  for (int i = 0; i < 2000; i += 2) expected.push_back(fmt::format("reject bad_character supports[{}]", i));
  for (int i = 1; i < 2000; i += 2) expected.push_back(fmt::format("warn bad_character supports[{}]", i));
  CHECK(test::fault_words(faults) == expected);
}
