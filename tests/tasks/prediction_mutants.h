// Damaged prediction and gold files through a task's scoring: an error with a message, or scores.
#pragma once

#include <functional>
#include <string>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"

namespace etc::test {

// Every metric of a result lies between 0 and 1.
inline void check_metrics(const Json& result) {
  for (const auto& [name, value] : result.at("metrics").items()) {
    CAPTURE(name);
    CHECK((value.get<double>() >= 0 && value.get<double>() <= 1));
  }
}

using ScoreFiles = std::function<void(const std::filesystem::path& predictions, const std::filesystem::path& gold)>;

// Calls `score`, which checks its own results, with two files of which one is damaged. Returns whether some pairs were
// scored and some refused; otherwise the test would show nothing.
[[nodiscard]] inline bool run_prediction_mutants(const std::string& predictions, const std::string& gold,
                                                 std::uint64_t count, const ScoreFiles& score) {
  const TemporaryFolder folder;
  const std::filesystem::path p = folder / "p.jsonl", g = folder / "g.jsonl";
  std::int64_t scored = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    const bool damages_gold = seed % 2 == 0;
    write_file(p, damages_gold ? predictions : mutate(predictions, seed));
    write_file(g, damages_gold ? mutate(gold, seed) : gold);
    try {
      score(p, g);
      ++scored;
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find(".jsonl") != std::string::npos);  // the message names the file
      ++refused;
    }
  }
  return scored > 0 && refused > 0;
}

}  // namespace etc::test
