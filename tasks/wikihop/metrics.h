// Accuracy of candidate choices (task-wikihop 6).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "tasks/task.h"

namespace etc::wikihop {

// Sums over the records that have an answer.
class Accuracy {
 public:
  // label: -1 if the answer is no candidate; then only the strings count. loss: of this example, before division. answer,
  // gold: as stored; they are normalised before comparison.
  void add(std::int64_t predicted, std::int64_t label, const std::string& answer, const std::string& gold, double loss);

  // A record that has no prediction: its string is wrong.
  void add_missing() { ++missing_; }

  // accuracy (index equals label) and loss = sum / (examples + 1e-5) over the examples with a label, whose number is
  // "examples"; string_accuracy over all records. Empty if none was added, apart from missing ones.
  Metrics metrics() const;

 private:
  std::int64_t examples_ = 0, answers_ = 0, missing_ = 0, right_index_ = 0, right_string_ = 0;
  double loss_ = 0;
};

// String accuracy of a prediction file over gold answers, both id → answer. A missing prediction counts as wrong; the
// denominator is the number of gold records. Returns {"metrics": {"string_accuracy"}, "missing", "records"}. Throws Error
// if there are no gold records.
Json score_predictions(const std::map<std::string, std::string>& predictions,
                       const std::map<std::string, std::string>& gold);

// The same from files: a JSON object id → answer, and raw WikiHop files. Throws Error naming file and key or record.
Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold);

}  // namespace etc::wikihop
