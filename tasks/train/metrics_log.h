// The numbers of a run, written twice: metrics.jsonl (one JSON object per line) and TensorBoard events.
//
// Lines: {"step", "time" (seconds since 1970), "kind": "train" | "eval", then the values}. A resumed run first drops
// the lines and events after the step it resumes from, and an evaluation already recorded is not added again, so the
// files look as if the run had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tasks/train/appended_file.h"
#include "tasks/train/tensorboard.h"

namespace etc {

class MetricsLog {
 public:
  MetricsLog(const std::filesystem::path& folder, std::int64_t resumed_step);

  // Non-finite values become null in JSON. A full disk is reported once; lines that cannot be written are kept and
  // written when there is room.
  void add(std::int64_t step, const std::string& kind, const std::vector<std::pair<std::string, double>>& values);

 private:
  std::filesystem::path cut_lines(std::int64_t step);

  std::filesystem::path path_;
  TensorBoardWriter events_;
  std::map<std::string, std::int64_t> last_;  // by kind, the last step already recorded
  AppendedFile lines_;
  bool refused_ = false;
};

}  // namespace etc
