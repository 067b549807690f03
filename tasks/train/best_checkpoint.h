// Checkpoint `best` of a run, and its handling while it cannot be written to disk.
//
// Invariant: the weights of the best evaluation are in folder `best`, or they are kept here until they can be saved.
// Kept weights are also written into checkpoint `last`, so that a run that is stopped or killed can resume with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "etc_core/base/json_fwd.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/parameters.h"
#include "tasks/task.h"

namespace etc {

// Whether an evaluation beats the best one so far (initially empty) by the first metric. Among equal ones the first
// stays. NaN is lower than every number: it beats only the absence of a result, and any number beats it.
bool is_better(const Metrics& now, const Metrics& best);

class BestCheckpoint {
 public:
  // Its name in checkpoint `last`.
  static constexpr const char* kKeptFile = "unsaved_best.safetensors";

  // `config` and `files` are those of every checkpoint of the run and must outlive this.
  BestCheckpoint(std::filesystem::path folder, const Json& config, const MoreFiles& files);

  // Makes the weights of `step` the best ones. If they cannot be saved, the log says so and a copy is kept, which takes
  // as much memory as the weights.
  void replace(const ParameterSet& parameters, std::int64_t step);

  // Tries once more to save the kept weights and logs the outcome. Does nothing when nothing is kept, or when it was
  // already tried (and logged) at `step`, the run's present one.
  void retry(std::int64_t step);

  bool saved() const { return kept_ == nullptr; }

  // Writes the kept weights as a file of checkpoint `last` of step `step`; writes no file when the checkpoint's own
  // weights are those.
  void write_kept(const std::filesystem::path& last, std::int64_t step) const;

  // Restores what write_kept() left in checkpoint `last`, for the best evaluation's step `best_step`; `parameters` are
  // the weights of `last`, of `step`. Throws Error when the file is damaged.
  void read_kept(const std::filesystem::path& last, const ParameterSet& parameters, std::int64_t step,
                 std::int64_t best_step);

 private:
  struct Kept {
    ParameterSet parameters;  // with memory of their own, on the host
    std::int64_t step = 0;
  };
  void keep(const ParameterSet& parameters, std::int64_t step);

  std::filesystem::path folder_;
  const Json& config_;
  const MoreFiles& files_;
  std::unique_ptr<Kept> kept_;    // null: nothing is kept
  std::int64_t tried_step_ = -1;  // of the last attempt that failed
};

}  // namespace etc
