// The numbers of a run, written twice: metrics.jsonl (one JSON object per line) and TensorBoard events.
//
// Lines: {"step", "time" (seconds since 1970), "kind": "train" | "eval", then the values}. A resumed run first drops
// the lines and events behind the step it resumes from, so the files read as if the run had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tasks/train/tensorboard.h"

namespace etc {

class MetricsLog {
 public:
  MetricsLog(const std::filesystem::path& folder, std::int64_t resumed_step);

  // Not finite values become null in JSON. A disk that refuses is reported once; the run goes on.
  void add(std::int64_t step, const std::string& kind, const std::vector<std::pair<std::string, double>>& values);

 private:
  std::filesystem::path path_;
  std::ofstream lines_;
  TensorBoardWriter events_;
  bool complained_ = false;
};

}  // namespace etc
