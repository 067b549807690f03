// The n best answers of every example, on request, in a file beside the official prediction file, which holds only one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tasks/output.h"
#include "tasks/task.h"

namespace etc {

// JSON lines {"id": …, "answers": [best, second, …]}, in the order of the calls; the members of an answer depend on the
// task.
class NBestFile {
 public:
  explicit NBestFile(const PredictionRequest& request);  // without n_best_output: does nothing

  std::int64_t count() const { return count_; }  // answers wanted of each example; 0: none
  void add(const std::string& id, const Json& answers);
  void finish();

 private:
  std::int64_t count_ = 0;
  std::optional<Output> output_;
};

}  // namespace etc
