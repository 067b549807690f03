// The on-disk record of a run, kept by one process: its folder, log, metrics and checkpoints.
//
// With several processes the first one has a record; the others need no folder. A full or read-only disk does not end a
// run, because space may become free later; the previous checkpoint stays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/parameters.h"
#include "tasks/train/best_checkpoint.h"
#include "tasks/train/metrics_log.h"
#include "tasks/train/run_directory.h"
#include "tasks/train/run_state.h"

namespace etc {

class RunRecord {
 public:
  // Locks the folder (run_directory.h); from now on every message also goes to its log. `config` and `files` are those
  // of every checkpoint and must outlive this.
  RunRecord(const std::filesystem::path& folder, const Json& config, const MoreFiles& files);

  std::filesystem::path last() const { return run_ / "last"; }
  std::filesystem::path best() const { return run_ / "best"; }
  const std::filesystem::path& folder() const { return run_.path(); }
  bool has_checkpoint() const { return std::filesystem::exists(last()); }

  // The run resumes from checkpoint `last`, whose weights are `parameters`.
  void take_up(const RunProgress& progress, const ParameterSet& parameters);

  // The run starts or resumes at this step, with this resolved configuration.
  void start(const Json& resolved_config, std::int64_t step);

  // A line of the metrics. Throws Error when the folder is gone.
  void add(std::int64_t step, const std::string& kind, const std::vector<std::pair<std::string, double>>& values);

  // An evaluation was the best so far.
  void take_best(const ParameterSet& parameters, std::int64_t step, const std::string& card);

  // Saves the weights as model folder kept/step_<step>, of which only the newest `most` stay. Write errors are logged.
  void keep(const ParameterSet& parameters, std::int64_t step, std::int64_t most);

  // Whether save() would write: something happened since the last time.
  bool wants_save(const RunProgress& progress);

  // Saves checkpoint `last`. Write errors are logged.
  void save(const ParameterSet& parameters, const std::map<std::string, Tensor>& tensors, RunProgress& progress,
            const Json& identity);

  // Throws Error unless the checkpoints hold the complete run. The second function is for a run stopped by this signal.
  void require_saved(const RunProgress& progress) const;
  void require_stopped_sound(const RunProgress& progress, const std::string& signal) const;

  // The step of checkpoint `last`; -1: there is none. The text is for messages.
  std::int64_t saved_step() const { return saved_step_; }
  std::string saved_text() const;

  // Checkpoint `best` of a run without evaluations: the last weights.
  void save_as_best(const ParameterSet& parameters, const std::string& card);

  // Logs where the checkpoints of the finished run are.
  void report_end(const RunProgress& progress) const;

 private:
  RunDirectory run_;
  const Json& config_;
  const MoreFiles& files_;
  MoreFiles best_files_;  // those of checkpoint `best`: also its card
  BestCheckpoint best_;
  std::unique_ptr<MetricsLog> metrics_;
  std::int64_t saved_step_ = -1;
  std::int64_t saved_evaluation_ = -1;  // RunProgress::evaluated_step of `last`
  bool saved_ = false;                  // the last attempt succeeded
};

}  // namespace etc
