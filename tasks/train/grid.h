// A grid of settings, each trained with several seeds on this machine: a folder of runs that can be resumed as a whole.
//
//   OUT/<setting>/seed=<s>/   one run each (run_directory.h); <setting>: learning_rate=1e-05,epochs=3, or "default"
//   OUT/grid.csv, grid.json   results so far: every run; per setting the median over its seeds and the deviation
//
// Finished runs are not repeated and interrupted ones are resumed, so the same command completes a grid that was
// stopped at any point, and a command with more values or seeds extends it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "etc_core/base/json.h"
#include "tasks/train/trainer.h"

namespace etc {

// One key of the configuration and the values it takes, in order.
struct GridAxis {
  std::string section;
  std::string name;
  std::vector<std::string> words;  // as given: the names of folders and rows
  std::vector<Json> values;        // the parsed values
};

struct Grid {
  std::vector<GridAxis> axes;  // none: one setting
  std::int64_t seeds = 1;      // training.seed, training.seed + 1, …
};

// One run of a grid.
struct GridRun {
  std::string setting;
  std::uint64_t seed = 0;
  RunConfig config;
  std::string folder() const { return setting + "/seed=" + std::to_string(seed); }
};

// The outcome of a run: its report, or why it has none.
struct GridResult {
  TrainReport report;
  std::string failure;  // empty: it finished
};

// The median over a setting's seeds and the standard deviation of one metric. Runs that failed have no value.
struct SettingMetric {
  std::string name;
  double median = 0;     // for an even number: the mean of the two in the middle
  double deviation = 0;  // sqrt(Σ (x − mean)² / (n − 1)); NaN for n = 1
};

struct SettingSummary {
  std::string setting;
  std::int64_t finished = 0;  // runs
  std::int64_t failed = 0;
  std::vector<SettingMetric> metrics;  // in the task's order; empty: no run was evaluated
};

// The runs of a grid, settings in the order of the axes (the last one fastest), seeds within them. `configure` makes
// the configuration from options {section: {key: value}}; errors it throws are extended by the setting.
std::vector<GridRun> plan_grid(const Grid& grid, const Json& options,
                               const std::function<RunConfig(const Json&)>& configure);

// results: of the first runs, in their order.
std::vector<SettingSummary> summarise(const std::vector<GridRun>& runs, const std::vector<GridResult>& results);

// The setting with the largest median of the first metric, the first among equals; null: none has one. NaN is lower
// than every number.
const SettingSummary* best_setting(const std::vector<SettingSummary>& summaries);

// Trains all runs one after the other into `output`, writing grid.csv and grid.json after each, and returns the
// results. A run whose loss is not finite is recorded and the grid continues; other errors are rethrown. Several
// processes: as train().
std::vector<GridResult> train_grid(const std::vector<GridRun>& runs, const std::filesystem::path& output,
                                   Communicator& processes = one_process());

// For people: a line for each setting, the best one, and a caveat about its figure.
std::string grid_text(const std::vector<GridRun>& runs, const std::vector<GridResult>& results);

}  // namespace etc
