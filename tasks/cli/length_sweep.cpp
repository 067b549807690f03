#include "tasks/cli/length_sweep.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "etc_core/base/counting.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/progress.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/count_memory.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/optim/optimizer.h"
#include "sparse/labels/builders.h"
#include "tasks/train/forecast.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr double kMegabyte = 1e6;

// One example of random tokens, a global token for every block.
EtcInput random_input(const EtcConfig& model, std::int64_t length, std::int64_t tokens_per_global) {
  const std::vector<std::int32_t> mask(static_cast<std::size_t>(length), 1);
  const sparse::FixedBlocks blocks = sparse::fixed_block_structure(mask, tokens_per_global);
  EtcInput input;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto bits = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, 1)[0];
    input.token_ids.push_back(static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(model.vocab_size)));
  }
  input.global_token_ids = blocks.global_token_ids;
  input.long_offsets.push_back(length);
  input.global_offsets.push_back(static_cast<std::int64_t>(input.global_token_ids.size()));
  input.labels = sparse::build_labels({&blocks.structure, 1}, {model.local_radius, model.relative_pos_max_distance,
                                                               model.use_hard_g2l_mask, model.use_hard_l2g_mask});
  return input;
}

class Call {
 public:
  // Parameters have no values yet.
  Call(const EtcConfig& model, SweepMode mode, ComputeType compute)
      : mode_(mode), compute_(compute), encoder_(model, parameters_), optimizer_({}) {}

  // Before run() initialize(); before count(), which is for counting memory, allocate().
  void initialize() {
    parameters_.initialize(1);
    if (mode_ == SweepMode::infer) encoder_.release_kernels(compute_);
  }
  void allocate() {
    for (const auto& parameter : parameters_.all()) parameter->allocate();
    if (mode_ == SweepMode::infer) encoder_.release_kernels(compute_);
  }

  void run(const EtcInput& input) {
    forward_backward(input);
    if (mode_ == SweepMode::infer) return;
    const auto parameters = param_refs(parameters_);
    optimizer_.step(parameters, 1e-6, clip_scale(global_norm(parameters), 1.0));
    parameters_.drop_gradients();
  }

  void count(const EtcInput& input) {
    forward_backward(input);
    const std::vector<Tensor> moments = moments_without_values(parameters_);
    parameters_.drop_gradients();
    memory_ledger::reset_peak();
    forward_backward(input);
  }

 private:
  void forward_backward(const EtcInput& input) {
    Tape tape(mode_ == SweepMode::train);
    ForwardOptions options;
    options.training = mode_ == SweepMode::train;
    EtcOutput states = encoder_.forward(tape, input, options);
    if (mode_ == SweepMode::infer) return;
    // Any gradient will do; its size has no influence on the time.
    for (Var* var : {&states.long_states, &states.global_states}) {
      std::fill_n(var->grad().data(), counting() ? 0 : var->grad().size(), 1e-3f);
    }
    states = {};
    tape.backward();
  }

  SweepMode mode_;
  ComputeType compute_;
  ParameterSet parameters_;
  EtcEncoder encoder_;
  Optimizer optimizer_;
};

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

SweepRow measure(const SweepOptions& options, const std::string& residual, ComputeType compute, std::int64_t length) {
  EtcConfig model = options.model;
  model.use_residual_attention = residual != "off";
  model.use_running_mean = residual == "mean";
  const EtcInput input = random_input(model, length, options.tokens_per_global);
  SweepRow row;
  row.residual = residual;
  row.compute = compute;
  row.length = length;
  row.globals = input.global_tokens();
  row.forecast = count_memory([&] {
    Call call(model, options.mode, compute);
    call.allocate();
    call.count(input);
  });
  if (options.forecast_only) return row;
  Call call(model, options.mode, compute);
  call.initialize();
  call.run(input);  // warms caches and makes what is made once: packed weights, moments
  memory_ledger::reset_peak();
  std::vector<double> seconds, cpu_seconds;
  for (std::int64_t i = 0; i < options.repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = processor_seconds();
    call.run(input);
    cpu_seconds.push_back(processor_seconds() - cpu_start);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  row.seconds = median(seconds);
  row.cpu_seconds = median(cpu_seconds);
  row.memory = memory_ledger::report();
  row.tokens_per_second = static_cast<double>(length) / row.seconds;
  return row;
}

bool measured(const SweepRow& row) {
  return row.seconds > 0;
}

double megabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / kMegabyte;
}

// Bytes by purpose as the table splits them.
const std::array<std::int64_t, kPurposeCount>& split_of(const SweepRow& row) {
  return measured(row) ? row.memory.at_peak : row.forecast.at_peak;
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

// What a line of a picture stands for: "sum", "sum bf16".
std::string row_kind(const SweepRow& row) {
  if (row.compute == ComputeType::fp32) return row.residual;
  return row.residual + " " + compute_type_name(row.compute);
}

// Two pictures from the CSV: one line per kind of residual scores and number type.
std::string gnuplot_script(const std::vector<SweepRow>& rows) {
  std::vector<std::string> kinds;
  for (const SweepRow& row : rows) {
    if (std::find(kinds.begin(), kinds.end(), row_kind(row)) == kinds.end()) kinds.push_back(row_kind(row));
  }
  std::string script =
      "set datafile separator ','\nset terminal svg size 800,500\nset xlabel 'long tokens L'\nset key top left\n"
      "set logscale x 2\nset logscale y\n";
  const auto plot = [&](const char* file, const char* title, int column) {
    script += fmt::format("set output '{}'\nset ylabel '{}'\nplot ", file, title);
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      script += fmt::format(
          "{}'benchmark.csv' using 2:(strcol(1) eq '{}' ? ${} : NaN) with linespoints title "
          "'residual scores {}'",
          k == 0 ? "" : ", ", kinds[k], column, kinds[k]);
    }
    script += "\n";
  };
  plot("time.svg", "seconds", 4);
  plot("memory.svg", "peak MB", 7);
  return script;
}

}  // namespace

std::vector<SweepRow> sweep_lengths(const SweepOptions& options) {
  std::vector<SweepRow> rows;
  Progress progress(
      "benchmark", static_cast<std::int64_t>(options.residual.size() * options.compute.size() * options.lengths.size()),
      "points");
  for (const std::string& residual : options.residual) {
    for (const ComputeType compute : options.compute) {
      for (const std::int64_t length : options.lengths) {
        if (StopSignal::requested()) throw Interrupted("etc benchmark: stopped");
        rows.push_back(measure(options, residual, compute, length));
        progress.update(static_cast<std::int64_t>(rows.size()),
                        fmt::format("L={} {} {}", length, residual, compute_type_name(compute)));
      }
    }
  }
  return rows;
}

std::string sweep_table(const std::vector<SweepRow>& rows) {
  const std::vector<int> purposes = used_purposes(rows);
  const bool timed = std::any_of(rows.begin(), rows.end(), measured);
  std::string text = fmt::format("{:>8} {:>7} {:>7} {:>6}", "residual", "compute", "L", "G");
  if (timed) text += fmt::format(" {:>10} {:>10} {:>10} {:>9}", "seconds", "CPU s", "tokens/s", "peak MB");
  text += fmt::format(" {:>11}", "forecast MB");
  for (const int p : purposes) text += fmt::format(" {:>11}", purpose_name(static_cast<Purpose>(p)));
  text += "\n";
  for (const SweepRow& row : rows) {
    text +=
        fmt::format("{:>8} {:>7} {:>7} {:>6}", row.residual, compute_type_name(row.compute), row.length, row.globals);
    if (timed) {
      text += fmt::format(" {:>10.4f} {:>10.4f} {:>10.0f} {:>9.1f}", row.seconds, row.cpu_seconds,
                          row.tokens_per_second, megabytes(row.memory.peak));
    }
    text += fmt::format(" {:>11.1f}", megabytes(row.forecast.peak));
    for (const int p : purposes) text += fmt::format(" {:>11.1f}", megabytes(split_of(row)[p]));
    text += "\n";
  }
  return text;
}

std::string sweep_csv(const std::vector<SweepRow>& rows) {
  std::string text = "kind,long_tokens,global_tokens,seconds,cpu_seconds,tokens_per_second,peak_mb,forecast_mb";
  for (int p = 0; p < kPurposeCount; ++p) text += fmt::format(",{}_mb", purpose_name(static_cast<Purpose>(p)));
  text += "\n";
  for (const SweepRow& row : rows) {
    text +=
        fmt::format("{},{},{},{:.6f},{:.6f},{:.1f},{:.3f},{:.3f}", row_kind(row), row.length, row.globals, row.seconds,
                    row.cpu_seconds, row.tokens_per_second, megabytes(row.memory.peak), megabytes(row.forecast.peak));
    for (int p = 0; p < kPurposeCount; ++p) text += fmt::format(",{:.3f}", megabytes(split_of(row)[p]));
    text += "\n";
  }
  return text;
}

bool write_sweep(const std::vector<SweepRow>& rows, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "benchmark.csv", sweep_csv(rows));
  write_file_atomically(folder / "benchmark.gnuplot", gnuplot_script(rows));
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) return false;
  // The folder goes through the environment, so that no character of its name means anything to the shell.
  ::setenv("ETC_BENCHMARK_FOLDER", folder.c_str(), 1);
  return std::system("cd \"$ETC_BENCHMARK_FOLDER\" && gnuplot benchmark.gnuplot") == 0;
}

}  // namespace etc::cli
