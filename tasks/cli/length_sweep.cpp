#include "tasks/cli/length_sweep.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "etc_core/base/byte_size.h"
#include "etc_core/base/device_state.h"
#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/log.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/progress.h"
#include "etc_core/nn/count_memory.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr std::int64_t kWarmUp = 512;        // long tokens
constexpr std::int64_t kShortestSlice = 64;  // long tokens

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

std::vector<int> used_purposes(const std::vector<SweepRow>& rows) {
  std::vector<int> used;
  for (int p = 0; p < kPurposeCount; ++p) {
    if (std::any_of(rows.begin(), rows.end(),
                    [p](const SweepRow& row) { return row.split().buffers.at_peak[p] > 0; })) {
      used.push_back(p);
    }
  }
  return used;
}

// A note on the effect of the memory limit on a row.
std::string limit_note(const SweepRow& row) {
  if (!row.fits) {
    return row.longest > 0 ? fmt::format("  does not fit; L = {} does", row.longest) : "  does not fit at any length";
  }
  return row.period > 0 ? fmt::format("  checkpointing period {}", row.period) : "";
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
  const bool timed = std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.measured(); });
  std::string text = fmt::format("{:>8} {:>7} {:>7} {:>6}", "residual", "compute", "L", "G");
  if (timed) text += fmt::format(" {:>10} {:>10} {:>10} {:>9}", "seconds", "CPU s", "tokens/s", "peak MB");
  text += fmt::format(" {:>11} {:>10} {:>10}", "forecast MB", "forecast s", "CPU s");
  for (const int p : purposes) text += fmt::format(" {:>11}", purpose_name(static_cast<Purpose>(p)));
  text += fmt::format(" {:>11}\n", "program");
  for (const SweepRow& row : rows) {
    text +=
        fmt::format("{:>8} {:>7} {:>7} {:>6}", row.residual, compute_type_name(row.compute), row.length, row.globals);
    if (timed && !row.measured()) {
      text += fmt::format(" {:>10} {:>10} {:>10} {:>9}", "-", "-", "-", "-");
    } else if (timed) {
      text += fmt::format(" {:>10.4f} {:>10.4f} {:>10.0f} {:>9.1f}", row.seconds.wall, row.seconds.processor,
                          row.tokens_per_second, megabytes(row.memory.peak()));
    }
    text += fmt::format(" {:>11.1f} {:>10.4f} {:>10.4f}", megabytes(row.forecast.peak()), row.forecast_seconds.wall,
                        row.forecast_seconds.processor);
    for (const int p : purposes) text += fmt::format(" {:>11.1f}", megabytes(row.split().buffers.at_peak[p]));
    text += fmt::format(" {:>11.1f}{}\n", megabytes(row.split().beside), limit_note(row));
  }
  return text;
}

}  // namespace etc::cli
