// From logits to answers, and the prediction file (task-wikihop 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "tasks/output.h"

namespace etc::wikihop {

// Index of the largest logit; the lowest index wins a tie. logits [C], C >= 1.
std::int64_t best_candidate(std::span<const float> logits);

// Lower-cased and stripped: the form in which candidates are stored, answers written and strings compared.
std::string normalised_answer(std::string_view text);

// One JSON object, example id → answer, written entry by entry in the order of the calls.
class PredictionFile {
 public:
  explicit PredictionFile(const std::filesystem::path& target);  // "-": standard output
  void add(const std::string& id, const std::string& answer);    // throws Error on a repeated id
  bool has(const std::string& id) const { return ids_.contains(id); }
  void finish();

 private:
  Output output_;
  std::set<std::string> ids_;
};

}  // namespace etc::wikihop
