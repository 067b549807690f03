#include "tasks/cli/length_sweep.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

#include "etc_core/base/byte_size.h"
#include "etc_core/base/device_state.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/log.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/progress.h"
#include "etc_core/nn/count_memory.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr double kMegabyte = 1e6;
constexpr std::int64_t kWarmUp = 512;                                         // long tokens
constexpr std::int64_t kShortestSlice = 64;                                   // long tokens
constexpr std::string_view kFirstColumns = "kind,long_tokens,global_tokens";  // common to all CSV files of a benchmark

struct Forecast {
  ProcessMemory memory;
  std::vector<profiler::Row> work;
};

// Call after a slice of the model has run: by then the process holds its memory beside the buffers.
Forecast forecast_call(const SweepOptions& options, const EncoderConfig& model, ComputeType compute, SliceInput input) {
  Forecast forecast;
  if (options.device == Device::cpu) forecast.memory.beside = bytes_beside_buffers();
  std::int64_t peaks = 0;
  forecast.memory.buffers = count_memory([&] {
    const CountedInput counted(model, input.length, input.tokens_per_global);
    forecast.work = EncoderCall(model, options.mode, {compute, options.scores}).count(counted.input());
    peaks = memory_ledger::sum_of_heap_peaks();
  });
  if (options.device == Device::cpu) forecast.memory.beside += peaks - forecast.memory.buffers.peak;
  return forecast;
}

bool fits(const SweepOptions& options, const ProcessMemory& forecast) {
  return options.memory_limit == 0 || forecast.peak() <= options.memory_limit;
}

// The longest input that fits, below `length`, which does not; by bisection over whole blocks.
std::int64_t longest_that_fits(const SweepOptions& options, const EncoderConfig& model, ComputeType compute,
                               std::int64_t length) {
  std::int64_t good = 0, bad = ceil_div(length, options.tokens_per_global);  // blocks
  while (bad - good > 1) {
    const std::int64_t middle = (good + bad) / 2;
    const std::int64_t tokens = middle * options.tokens_per_global;
    const SliceInput input{tokens, options.tokens_per_global};
    (fits(options, forecast_call(options, model, compute, input).memory) ? good : bad) = middle;
  }
  return good * options.tokens_per_global;
}

// The slice for calls of `length`; a shorter one if that does not fit into the memory limit.
SliceInput slice_that_fits(const SweepOptions& options, const EncoderConfig& model, ComputeType compute,
                           std::int64_t length) {
  SliceInput slice = slice_input(length, options.tokens_per_global);
  if (options.memory_limit == 0) return slice;
  const ModelConfig layers = slice_model(model);
  while (slice.length > kShortestSlice && !fits(options, forecast_call(options, *layers, compute, slice).memory))
    slice = slice_input(slice.length / 2, options.tokens_per_global);
  return slice;
}

// rates: of slices already measured.
SweepRow forecast_row(const SweepOptions& options, const std::string& residual, ComputeType compute,
                      std::int64_t length, std::map<SliceInput, OperatorRates>& rates) {
  ModelConfig model = model_with_scores(options.model, residual);
  const SliceInput slice = slice_that_fits(options, *model, compute, length);
  if (!rates.contains(slice)) {
    rates.emplace(slice, OperatorRates(*model, options.mode, {compute, options.scores}, options.device, slice));
    release_unused_memory();
  }
  SweepRow row;
  row.residual = residual;
  row.compute = compute;
  row.length = length;
  // As in random_input(): an encoder that reads no structure has no global tokens.
  row.globals = model->has_global_tokens() ? ceil_div(length, options.tokens_per_global) : 0;
  const SliceInput input{length, options.tokens_per_global};
  Forecast forecast = forecast_call(options, *model, compute, input);
  if (!fits(options, forecast.memory) && options.mode == CallMode::train && model->grad_checkpointing_period != 1) {
    model->grad_checkpointing_period = 1;
    forecast = forecast_call(options, *model, compute, input);
  }
  row.forecast = forecast.memory;
  row.forecast_seconds = rates.at(slice).of(forecast.work);
  row.period = model->grad_checkpointing_period;
  row.fits = fits(options, row.forecast);
  if (!row.fits) row.longest = longest_that_fits(options, *model, compute, length);
  return row;
}

std::string point_text(const std::string& residual, ComputeType compute, std::int64_t length) {
  return fmt::format("L={} {} {}", length, residual, compute_type_name(compute));
}

// Progress is counted in calls, since a single call with a long input takes minutes.
class CallProgress {
 public:
  explicit CallProgress(std::int64_t calls) : progress_("benchmark", calls, "calls") {}

  void begin_point(const std::string& point) {
    stop_on_signal();
    point_ = point;
    progress_.announce(done_, point_ + ", warm-up");
  }
  void begin_repeat(std::int64_t number, std::int64_t repeats) {
    stop_on_signal();
    progress_.update(done_, fmt::format("{}, {} of {}", point_, number, repeats));
  }
  void end_call() { ++done_; }
  const std::string& point() const { return point_; }
  void finish() { progress_.update(done_); }

 private:
  static void stop_on_signal() {
    if (StopSignal::requested()) throw Interrupted("etc benchmark: stopped");
  }

  Progress progress_;
  std::int64_t done_ = 0;
  std::string point_;
};

void measure_row(const SweepOptions& options, SweepRow& row, CallProgress& progress) {
  progress.begin_point(point_text(row.residual, row.compute, row.length));
  release_unused_memory();  // so that a row's peak does not include memory of earlier rows
  ModelConfig model = model_with_scores(options.model, row.residual);
  model->grad_checkpointing_period = row.period;
  const EncoderInput input = random_input(*model, row.length, options.tokens_per_global);
  EncoderCall call(*model, options.mode, {row.compute, options.scores});
  call.initialize(options.device);
  // Does one-time work: packing weights, allocating moments. A median of repeats should not include page faults of
  // fresh memory either, so the first call has full length, and the same input, because the memory of another would
  // remain with the process. For a single call, used to measure the memory of long inputs, saving half the time is more
  // important.
  if (options.repeats > 1 || row.length <= kWarmUp) {
    call.run(input);
  } else {
    call.run(random_input(*model, kWarmUp, options.tokens_per_global));
  }
  progress.end_call();
  memory_ledger::reset_peak();
  reset_process_peak();
  std::vector<double> seconds, cpu_seconds;
  for (std::int64_t i = 0; i < options.repeats; ++i) {
    progress.begin_repeat(i + 1, options.repeats);
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = processor_seconds();
    call.run(input);
    wait_for(options.device);
    cpu_seconds.push_back(processor_seconds() - cpu_start);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    progress.end_call();
  }
  row.seconds = {median(seconds), median(cpu_seconds)};
  row.memory = measured_memory(options.device);
  if (!fits(options, row.memory)) {
    log::warn("{}: took {}, more than the limit of {} and the {} that were expected", progress.point(),
              byte_size_text(row.memory.peak()), byte_size_text(options.memory_limit),
              byte_size_text(row.forecast.peak()));
  }
  row.tokens_per_second = static_cast<double>(row.length) / row.seconds.wall;
}

bool measured(const SweepRow& row) {
  return row.seconds.wall > 0;
}

double megabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / kMegabyte;
}

// Bytes by purpose, as split in the table.
const std::array<std::int64_t, kPurposeCount>& split_of(const SweepRow& row) {
  return (measured(row) ? row.memory : row.forecast).buffers.at_peak;
}

std::int64_t program_of(const SweepRow& row) {
  return (measured(row) ? row.memory : row.forecast).beside;
}

std::vector<int> used_purposes(const std::vector<SweepRow>& rows) {
  std::vector<int> used;
  for (int p = 0; p < kPurposeCount; ++p) {
    if (std::any_of(rows.begin(), rows.end(), [p](const SweepRow& row) { return split_of(row)[p] > 0; })) {
      used.push_back(p);
    }
  }
  return used;
}

// The kind of a line in the plot: "sum", "sum bf16".
std::string row_kind(const SweepRow& row) {
  if (row.compute == ComputeType::fp32) return row.residual;
  return row.residual + " " + compute_type_name(row.compute);
}

// A note on the effect of the memory limit on a row.
std::string limit_note(const SweepRow& row) {
  if (!row.fits) {
    return row.longest > 0 ? fmt::format("  does not fit; L = {} does", row.longest) : "  does not fit at any length";
  }
  return row.period > 0 ? fmt::format("  checkpointing period {}", row.period) : "";
}

struct Picture {
  const char* file;
  const char* title;
  const char* axis;
  int column;  // of the CSV
};
constexpr Picture kPictures[] = {{kSweepFiles[2], "Time", "seconds by the clock, median", 4},
                                 {kSweepFiles[3], "Memory", "peak memory, MB", 7}};

constexpr const char* kPictureStyle =
    "set datafile separator ','\nset terminal svg size 900,500 background 'white'\nset xlabel 'long tokens L'\n"
    "set key outside right top\nset border 31\nset logscale x 2\nset logscale y\nset mytics 10\n"
    "set grid xtics ytics mytics linecolor rgb '#909090', linecolor rgb '#d8d8d8'\n";

// A colour for each kind of residual scores (distinguishable with colour-vision deficiency), a dash pattern for each
// number type.
std::string line_style(const SweepRow& row) {
  const char* const colour = row.residual == "off" ? "#000000" : row.residual == "sum" ? "#0072B2" : "#D55E00";
  const char* const dash = row.compute == ComputeType::fp32   ? "solid"
                           : row.compute == ComputeType::bf16 ? "(9,5)"
                                                              : "(2,4)";
  return fmt::format("linewidth 3 linecolor rgb '{}' dashtype {}", colour, dash);
}

// A description of the measurement: "one training step, 12 layers, H 768, cpu, 2 threads".
std::string measured_text(const SweepOptions& options) {
  const char* const call = options.mode == CallMode::train ? "one training step" : "one call of inference";
  std::string text =
      fmt::format("{}, {} layers, H {}", call, options.model->num_hidden_layers, options.model->hidden_size);
  if (options.device != Device::cpu) return text + ", " + device_name(options.device);
  return text + fmt::format(", {} {}", thread_count(), thread_count() == 1 ? "thread" : "threads");
}

// gnuplot commands for one plot from the CSV: a line per kind of residual scores and number type.
std::string plot_text(const SweepOptions& options, const std::vector<SweepRow>& rows, const Picture& picture) {
  std::string script =
      fmt::format("set title '{} of {}'\nset ylabel '{}'\nplot ", picture.title, measured_text(options), picture.axis);
  std::set<std::string> drawn;
  for (const SweepRow& row : rows) {
    const std::string kind = row_kind(row);
    if (!drawn.insert(kind).second) continue;
    script +=
        fmt::format("{}'{}' using 2:(strcol(1) eq '{}' ? ${} : NaN) with linespoints {} title 'residual scores {}'",
                    drawn.size() == 1 ? "" : ", ", kSweepFiles[0], kind, picture.column, line_style(row), kind);
  }
  return script + "\n";
}

// Both plots, for users who want to redraw them.
std::string gnuplot_script(const SweepOptions& options, const std::vector<SweepRow>& rows) {
  std::string script = kPictureStyle;
  for (const Picture& picture : kPictures) {
    script += fmt::format("set output '{}'\n", picture.file) + plot_text(options, rows, picture);
  }
  return script;
}

// The output of gnuplot, taken from its standard output, so that a plot is written like every other file. The folder
// and the commands are passed in the environment, so that no character of them is interpreted by the shell.
std::string draw(const std::string& commands, const std::filesystem::path& folder) {
  ::setenv("ETC_BENCHMARK_FOLDER", folder.c_str(), 1);
  ::setenv("ETC_BENCHMARK_PLOT", commands.c_str(), 1);
  std::FILE* pipe = ::popen("cd \"$ETC_BENCHMARK_FOLDER\" && printf %s \"$ETC_BENCHMARK_PLOT\" | gnuplot", "r");
  if (pipe == nullptr) fail("benchmark", "cannot start gnuplot: {}", std::strerror(errno));
  std::string picture;
  char block[65536];
  for (std::size_t got = 0; (got = std::fread(block, 1, sizeof block, pipe)) > 0;) picture.append(block, got);
  const int status = ::pclose(pipe);
  if (status != 0 || picture.find("</svg>") == std::string::npos) {
    fail("benchmark", "gnuplot drew no whole picture: expected exit code 0, got {}",
         WIFEXITED(status) ? WEXITSTATUS(status) : status);
  }
  return picture;
}

}  // namespace

ModelConfig model_with_scores(ModelConfig model, const std::string& residual) {
  model->use_residual_attention = residual != "off";
  model->use_running_mean = residual == "mean";
  return model;
}

std::vector<SweepRow> forecast_lengths(const SweepOptions& options) {
  std::vector<SweepRow> rows;
  Progress progress("forecast",
                    std::ssize(options.residual) * std::ssize(options.compute) * std::ssize(options.lengths), "points");
  for (const std::string& residual : options.residual) {
    for (const ComputeType compute : options.compute) {
      std::map<SliceInput, OperatorRates> rates;
      for (const std::int64_t length : options.lengths) {
        if (StopSignal::requested()) throw Interrupted("etc benchmark: stopped");
        progress.announce(std::ssize(rows), point_text(residual, compute, length));
        rows.push_back(forecast_row(options, residual, compute, length, rates));
        progress.update(std::ssize(rows), point_text(residual, compute, length));
      }
    }
  }
  return rows;
}

void measure_lengths(const SweepOptions& options, std::vector<SweepRow>& rows) {
  const auto fitting = std::count_if(rows.begin(), rows.end(), [](const SweepRow& row) { return row.fits; });
  CallProgress progress(fitting * (options.repeats + 1));
  for (SweepRow& row : rows) {
    if (row.fits) measure_row(options, row, progress);
  }
  progress.finish();
}

std::string sweep_table(const std::vector<SweepRow>& rows) {
  const std::vector<int> purposes = used_purposes(rows);
  const bool timed = std::any_of(rows.begin(), rows.end(), measured);
  std::string text = fmt::format("{:>8} {:>7} {:>7} {:>6}", "residual", "compute", "L", "G");
  if (timed) text += fmt::format(" {:>10} {:>10} {:>10} {:>9}", "seconds", "CPU s", "tokens/s", "peak MB");
  text += fmt::format(" {:>11} {:>10} {:>10}", "forecast MB", "forecast s", "CPU s");
  for (const int p : purposes) text += fmt::format(" {:>11}", purpose_name(static_cast<Purpose>(p)));
  text += fmt::format(" {:>11}\n", "program");
  for (const SweepRow& row : rows) {
    text +=
        fmt::format("{:>8} {:>7} {:>7} {:>6}", row.residual, compute_type_name(row.compute), row.length, row.globals);
    if (timed && !measured(row)) {
      text += fmt::format(" {:>10} {:>10} {:>10} {:>9}", "-", "-", "-", "-");
    } else if (timed) {
      text += fmt::format(" {:>10.4f} {:>10.4f} {:>10.0f} {:>9.1f}", row.seconds.wall, row.seconds.processor,
                          row.tokens_per_second, megabytes(row.memory.peak()));
    }
    text += fmt::format(" {:>11.1f} {:>10.4f} {:>10.4f}", megabytes(row.forecast.peak()), row.forecast_seconds.wall,
                        row.forecast_seconds.processor);
    for (const int p : purposes) text += fmt::format(" {:>11.1f}", megabytes(split_of(row)[p]));
    text += fmt::format(" {:>11.1f}{}\n", megabytes(program_of(row)), limit_note(row));
  }
  return text;
}

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  std::string text = std::string(kFirstColumns) +
                     ",seconds,cpu_seconds,tokens_per_second,peak_mb,forecast_mb,forecast_seconds,forecast_cpu_seconds";
  for (int p = 0; p < kPurposeCount; ++p) text += fmt::format(",{}_mb", purpose_name(static_cast<Purpose>(p)));
  text += ",program_mb\n";
  for (const SweepRow& row : rows) {
    if (!measured(row)) continue;  // did not fit
    text +=
        fmt::format("{},{},{},{:.6f},{:.6f},{:.1f},{:.3f},{:.3f},{:.6f},{:.6f}", row_kind(row), row.length, row.globals,
                    row.seconds.wall, row.seconds.processor, row.tokens_per_second, megabytes(row.memory.peak()),
                    megabytes(row.forecast.peak()), row.forecast_seconds.wall, row.forecast_seconds.processor);
    for (int p = 0; p < kPurposeCount; ++p) text += fmt::format(",{:.3f}", megabytes(split_of(row)[p]));
    text += fmt::format(",{:.3f}\n", megabytes(program_of(row)));
  }
  return text;
}

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

std::string write_sweep(const SweepOptions& options, const std::vector<SweepRow>& rows,
                        const std::filesystem::path& folder) {
  write_file_atomically(folder / kSweepFiles[0], sweep_csv(rows));
  write_file_atomically(folder / kSweepFiles[1], gnuplot_script(options, rows));
  if (std::none_of(rows.begin(), rows.end(), measured)) return kSweepFiles[0];
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) {
    return fmt::format("{} (install gnuplot and run: gnuplot {})", kSweepFiles[0], kSweepFiles[1]);
  }
  for (const Picture& picture : kPictures) {
    write_file_atomically(folder / picture.file, draw(kPictureStyle + plot_text(options, rows, picture), folder));
  }
  return fmt::format("{}, {}, {}", kSweepFiles[0], kPictures[0].file, kPictures[1].file);
}

}  // namespace etc::cli
