#include "tasks/cli/sweep_files.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>

#include "etc_core/base/device_state.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/parallel.h"
#include "tasks/plot/line_plot.h"

namespace etc::cli {

namespace {

constexpr std::string_view kFirstColumns = "kind,long_tokens,global_tokens";  // common to all CSV files of a benchmark

// Kind of residual scores and number type: "sum", "sum bf16".
std::string row_kind(const SweepRow& row) {
  if (row.compute == ComputeType::fp32) return row.residual;
  return row.residual + " " + compute_type_name(row.compute);
}

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  std::string text = std::string(kFirstColumns) +
                     ",seconds,cpu_seconds,tokens_per_second,peak_mb,forecast_mb,forecast_seconds,forecast_cpu_seconds";
  for (int p = 0; p < kPurposeCount; ++p) text += fmt::format(",{}_mb", purpose_name(static_cast<Purpose>(p)));
  text += ",program_mb\n";
  for (const SweepRow& row : rows) {
    if (!row.measured()) continue;  // did not fit
    text +=
        fmt::format("{},{},{},{:.6f},{:.6f},{:.1f},{:.3f},{:.3f},{:.6f},{:.6f}", row_kind(row), row.length, row.globals,
                    row.seconds.wall, row.seconds.processor, row.tokens_per_second, megabytes(row.memory.peak()),
                    megabytes(row.forecast.peak()), row.forecast_seconds.wall, row.forecast_seconds.processor);
    for (int p = 0; p < kPurposeCount; ++p) text += fmt::format(",{:.3f}", megabytes(row.split().buffers.at_peak[p]));
    text += fmt::format(",{:.3f}\n", megabytes(row.split().beside));
  }
  return text;
}

// A value of a row, as measured or as forecast.
using OfRow = double (*)(const SweepRow& row, bool measured);

double seconds_of(const SweepRow& row, bool measured) {
  return measured ? row.seconds.wall : row.forecast_seconds.wall;
}

double memory_of(const SweepRow& row, bool measured) {
  return megabytes((measured ? row.memory : row.forecast).peak());
}

// A description of the measurement: "one training step, 12 layers, H 768, cpu, 2 threads".
std::string measured_text(const SweepOptions& options) {
  const char* const call = options.mode == CallMode::train ? "one training step" : "one call of inference";
  std::string text = fmt::format("{}, {} layers, H {}, {}", call, options.model->num_hidden_layers,
                                 options.model->hidden_size, device_name(options.device));
  if (options.device != Device::cpu) return text;
  return text + fmt::format(", {} {}", thread_count(), thread_count() == 1 ? "thread" : "threads");
}

// The rows of one kind, by length. Measured values are filled marks on a solid line, forecasts hollow marks on a dashed
// one, so that they are distinct without colours; a row that was not measured is a gap.
plot::Series series_of(const std::vector<SweepRow>& rows, const std::string& kind, bool measured, OfRow value) {
  plot::Series series{fmt::format("residual scores {}, {}", kind, measured ? "measured" : "forecast"), {}};
  for (const SweepRow& row : rows) {
    if (row_kind(row) != kind) continue;
    const bool shown = row.measured() || !measured;
    series.points.emplace_back(static_cast<double>(row.length), shown ? value(row, measured) : std::nan(""));
  }
  std::sort(series.points.begin(), series.points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  series.dash = measured ? "" : "5,4";
  series.marks = measured ? plot::Marks::filled : plot::Marks::hollow;
  return series;
}

// Forecasts first, so that measured values are drawn over them.
std::string picture(const SweepOptions& options, const std::vector<SweepRow>& rows, plot::LinePlot plot, OfRow value) {
  plot.title += " of " + measured_text(options);
  plot.x_label = "long tokens L";
  plot.logarithmic_x = plot.logarithmic_y = true;
  std::vector<std::string> kinds;
  for (const SweepRow& row : rows) {
    if (std::find(kinds.begin(), kinds.end(), row_kind(row)) == kinds.end()) kinds.push_back(row_kind(row));
    plot.x_ticks.push_back(static_cast<double>(row.length));
  }
  std::sort(plot.x_ticks.begin(), plot.x_ticks.end());
  plot.x_ticks.erase(std::unique(plot.x_ticks.begin(), plot.x_ticks.end()), plot.x_ticks.end());
  const bool any_measured = std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.measured(); });
  for (const bool measured : {false, true}) {
    if (measured && !any_measured) break;
    for (std::size_t n = 0; n < kinds.size(); ++n) {
      plot.series.push_back(series_of(rows, kinds[n], measured, value));
      plot.series.back().colour = plot::series_colour(n, kinds.size());
    }
  }
  return plot::drawn(plot);
}

}  // namespace

void require_no_others(const std::filesystem::path& folder) {
  const std::filesystem::path csv = folder / kSweepFiles[0];
  if (std::filesystem::is_regular_file(csv)) {
    std::ifstream file(csv);
    std::string first_line;
    std::getline(file, first_line);
    if (first_line.starts_with(kFirstColumns)) return;
  }
  for (const char* name : kSweepFiles) {
    if (!std::filesystem::is_regular_file(folder / name)) continue;
    fail_usage("etc benchmark",
               "{} exists and no benchmark wrote it: expected another folder (--overwrite replaces it)",
               (folder / name).string());
  }
}

void write_sweep(const SweepOptions& options, const std::vector<SweepRow>& rows, const std::filesystem::path& folder) {
  const std::string calls = options.repeats == 1 ? "" : fmt::format(", median of {} calls", options.repeats);
  write_file_atomically(folder / kSweepFiles[0], sweep_csv(rows));
  write_file_atomically(
      folder / kSweepFiles[1],
      picture(options, rows, {"Time", "", "time by the clock (seconds" + calls + ")", {}}, seconds_of));
  write_file_atomically(folder / kSweepFiles[2],
                        picture(options, rows, {"Memory", "", "peak memory (MB)", {}}, memory_of));
}

}  // namespace etc::cli
