#include "tasks/train/grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/median.h"
#include "tasks/train/first_fault.h"
#include "tasks/train/run_directory.h"

namespace etc {

namespace {

namespace fs = std::filesystem;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Every choice of one value per axis: `indices` counts like a number whose last digit is the last axis.
bool next_setting(const std::vector<GridAxis>& axes, std::vector<std::size_t>& indices) {
  for (std::size_t a = axes.size(); a-- > 0;) {
    if (++indices[a] < axes[a].values.size()) return true;
    indices[a] = 0;
  }
  return false;
}

std::string setting_name(const std::vector<GridAxis>& axes, const std::vector<std::size_t>& indices) {
  if (axes.empty()) return "default";
  std::vector<std::string> parts;
  for (std::size_t a = 0; a < axes.size(); ++a) parts.push_back(axes[a].name + "=" + axes[a].words[indices[a]]);
  return fmt::format("{}", fmt::join(parts, ","));
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return kNone;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// One metric over runs; NaN when a run's value is NaN, because a median would be meaningless.
SettingMetric over_runs(const std::string& name, const std::vector<double>& values) {
  const bool meant = std::none_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
  return {name, meant ? median(values) : kNone, meant ? deviation_of(values) : kNone};
}

SettingSummary summary_of(const std::string& setting, const std::vector<const GridResult*>& results) {
  SettingSummary summary;
  summary.setting = setting;
  const Metrics* names = nullptr;
  for (const GridResult* result : results) {
    ++(result->failure.empty() ? summary.finished : summary.failed);
    if (result->failure.empty()) names = &result->report.best;
  }
  if (names == nullptr) return summary;
  for (std::size_t m = 0; m < names->size(); ++m) {
    std::vector<double> values;
    for (const GridResult* result : results) {
      if (result->failure.empty()) values.push_back(result->report.best.at(m).second);
    }
    summary.metrics.push_back(over_runs((*names)[m].first, values));
  }
  return summary;
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json run_json(const GridRun& run, const GridResult& result) {
  Json json{{"setting", run.setting}, {"seed", run.seed}, {"folder", run.folder()}};
  if (!result.failure.empty()) {
    json["failure"] = result.failure;
    return json;
  }
  json["steps"] = result.report.step;
  json["metrics"] = Json::object();
  for (const auto& [name, value] : result.report.best) json["metrics"][name] = number_or_null(value);
  return json;
}

Json summary_json(const SettingSummary& summary) {
  Json json{{"setting", summary.setting},
            {"finished", summary.finished},
            {"failed", summary.failed},
            {"metrics", Json::object()}};
  for (const SettingMetric& metric : summary.metrics) {
    json["metrics"][metric.name] = {{"median", number_or_null(metric.median)},
                                    {"deviation", number_or_null(metric.deviation)}};
  }
  return json;
}

// Settings contain commas when there are several axes, so they are quoted.
std::string csv_of(const std::vector<GridRun>& runs, const std::vector<GridResult>& results) {
  std::vector<std::string> names;
  for (const GridResult& result : results) {
    for (const auto& [name, value] : result.report.best) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string text = fmt::format("setting,seed,steps,ended{}{}\n", names.empty() ? "" : ",", fmt::join(names, ","));
  for (std::size_t r = 0; r < results.size(); ++r) {
    const GridResult& result = results[r];
    text += fmt::format("\"{}\",{},{},{}", runs[r].setting, runs[r].seed, result.report.step,
                        result.failure.empty() ? "yes" : "diverged");
    for (const std::string& name : names) {
      const auto& best = result.report.best;
      const auto found =
          std::find_if(best.begin(), best.end(), [&](const auto& metric) { return metric.first == name; });
      text += found == best.end() ? "," : fmt::format(",{}", found->second);
    }
    text += '\n';
  }
  return text;
}

void write_results(const std::vector<GridRun>& runs, const std::vector<GridResult>& results, const fs::path& output) {
  const std::vector<SettingSummary> summaries = summarise(runs, results);
  Json json{{"runs", Json::array()}, {"settings", Json::array()}, {"planned_runs", runs.size()}};
  for (std::size_t r = 0; r < results.size(); ++r) json["runs"].push_back(run_json(runs[r], results[r]));
  for (const SettingSummary& summary : summaries) json["settings"].push_back(summary_json(summary));
  if (const SettingSummary* best = best_setting(summaries)) json["best_setting"] = best->setting;
  write_file_atomically(output / "grid.json", json_text(json));
  write_file_atomically(output / "grid.csv", csv_of(runs, results));
}

// Throws UsageError if the folder holds files but no grid: neither results nor one of these runs.
void require_grid_folder(const std::vector<GridRun>& runs, const fs::path& output) {
  std::error_code none;
  if (!fs::exists(output) || fs::is_empty(output, none)) return;
  const fs::path results = output / "grid.json";
  if (fs::exists(results) && try_parse_json(read_file(results)).contains("planned_runs")) return;
  if (std::any_of(runs.begin(), runs.end(), [&](const GridRun& run) { return is_run_folder(output / run.folder()); }))
    return;
  fail_usage(
      output.string(),
      "the folder holds files that belong to no grid: expected a new or empty folder, or that of a grid with one "
      "of these runs");
}

GridResult train_one(const GridRun& run, const fs::path& output, Communicator& processes) {
  try {
    return {train(run.config, output / run.folder(), processes), ""};
  } catch (const Diverged& diverged) {
    log::warn("{}", diverged.what());
    return {{}, diverged.what()};
  }
}

}  // namespace

std::vector<GridRun> plan_grid(const Grid& grid, const Json& options,
                               const std::function<RunConfig(const Json&)>& configure) {
  std::vector<GridRun> runs;
  std::vector<std::size_t> indices(grid.axes.size(), 0);
  do {
    Json setting = options;
    for (std::size_t a = 0; a < grid.axes.size(); ++a) {
      setting[grid.axes[a].section][grid.axes[a].name] = grid.axes[a].values[indices[a]];
    }
    const std::string name = setting_name(grid.axes, indices);
    RunConfig config;
    try {
      config = configure(setting);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{} (setting {} of the grid)", error.what(), name));
    }
    const std::uint64_t first = config.training.seed;
    for (std::int64_t s = 0; s < grid.seeds; ++s) {
      config.training.seed = first + static_cast<std::uint64_t>(s);
      runs.push_back({name, config.training.seed, config});
    }
  } while (next_setting(grid.axes, indices));
  return runs;
}

std::vector<SettingSummary> summarise(const std::vector<GridRun>& runs, const std::vector<GridResult>& results) {
  std::vector<SettingSummary> summaries;
  for (std::size_t r = 0; r < results.size();) {
    const std::string& setting = runs[r].setting;
    std::vector<const GridResult*> of_setting;
    for (; r < results.size() && runs[r].setting == setting; ++r) of_setting.push_back(&results[r]);
    summaries.push_back(summary_of(setting, of_setting));
  }
  return summaries;
}

const SettingSummary* best_setting(const std::vector<SettingSummary>& summaries) {
  const SettingSummary* best = nullptr;
  for (const SettingSummary& summary : summaries) {
    if (summary.metrics.empty() || std::isnan(summary.metrics.front().median)) continue;
    if (best == nullptr || summary.metrics.front().median > best->metrics.front().median) best = &summary;
  }
  return best;
}

std::vector<GridResult> train_grid(const std::vector<GridRun>& runs, const fs::path& output, Communicator& processes) {
  if (processes.first()) require_grid_folder(runs, output);
  if (processes.first() && runs.front().config.data.eval.empty()) {
    log::warn("grid: without --eval-data nothing is measured, and the settings are not compared");
  }
  std::vector<GridResult> results;
  for (const GridRun& run : runs) {
    log::info("grid: run {} of {}: {}", results.size() + 1, runs.size(), run.folder());
    results.push_back(train_one(run, output, processes));
    if (processes.first()) write_results(runs, results, output);
  }
  return results;
}

std::string grid_text(const std::vector<GridRun>& runs, const std::vector<GridResult>& results) {
  const std::vector<SettingSummary> summaries = summarise(runs, results);
  std::string text;
  for (const SettingSummary& summary : summaries) {
    text += summary.setting;
    for (const SettingMetric& metric : summary.metrics) {
      text += fmt::format("  {} {:.6g}", metric.name, metric.median);
      if (!std::isnan(metric.deviation)) text += fmt::format(" ± {:.3g}", metric.deviation);
    }
    text += fmt::format("  ({} of {} runs{})\n", summary.finished, summary.finished + summary.failed,
                        summary.failed > 0 ? ", the others diverged" : "");
  }
  if (const SettingSummary* best = best_setting(summaries); best != nullptr && summaries.size() > 1) {
    text += fmt::format(
        "best setting {}, by the median of {}; it was chosen among {} on the examples it is measured on, so its figure "
        "is optimistic: measure it on other examples\n",
        best->setting, best->metrics.front().name, summaries.size());
  }
  return text;
}

}  // namespace etc
