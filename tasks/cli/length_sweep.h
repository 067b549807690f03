// Time and memory of one encoder call as a function of the sequence length: measured and forecast by `etc benchmark`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/process_memory.h"
#include "etc_core/nn/encoder_config.h"
#include "tasks/cli/encoder_call.h"
#include "tasks/cli/time_forecast.h"

namespace etc::cli {

struct SweepOptions {
  ModelConfig model;                  // its residual keys are replaced by `residual`
  std::vector<std::int64_t> lengths;  // L, one example each
  std::vector<std::string> residual;  // "off", "sum", "mean"
  CallMode mode = CallMode::infer;
  std::vector<ComputeType> compute = {ComputeType::fp32};  // of inference; training is fp32
  ScoreType scores = ScoreType::int32;                     // of inference
  std::int64_t tokens_per_global = 16;                     // G = L / this, rounded up
  Device device = Device::cpu;
  std::int64_t repeats = 3;       // timed, after one untimed call
  std::int64_t memory_limit = 0;  // bytes of the process, or of the device; 0: none
};

// One point.
struct SweepRow {
  std::string residual;
  ComputeType compute = ComputeType::fp32;
  std::int64_t length = 0;       // L
  std::int64_t globals = 0;      // G
  std::int64_t period = 0;       // of activation checkpointing; 1 if only that fits into the memory limit
  bool fits = true;              // into the memory limit; otherwise only forecast, and
  std::int64_t longest = 0;      // the longest L that fits, a multiple of tokens_per_global; 0: none
  ProcessMemory forecast;        // expected peak of one call, weights included (nn/count_memory.h)
  Seconds forecast_seconds;      // expected time of one call (time_forecast.h)
  Seconds seconds;               // median of the repeats; 0: not measured
  double tokens_per_second = 0;  // long tokens
  ProcessMemory memory;          // measured peak

  bool measured() const { return seconds.wall > 0; }
  // The memory whose split by purpose is shown: the measured one, or the forecast if nothing was measured.
  const ProcessMemory& split() const { return measured() ? memory : forecast; }
};

inline double megabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

// The model with residual scores "off", "sum" or "mean"; not validated.
ModelConfig model_with_scores(ModelConfig model, const std::string& residual);

// One row for each kind of scores, number type and length, with forecast memory and time. Inputs are random tokens in
// blocks of tokens_per_global, each with its global token; weights are randomly initialised. With a memory limit,
// training uses checkpointing of every layer if nothing else fits. Uses the profiler.
std::vector<SweepRow> forecast_lengths(const SweepOptions& options);

// Adds measurements to the rows that fit.
void measure_lengths(const SweepOptions& options, std::vector<SweepRow>& rows);

std::string sweep_table(const std::vector<SweepRow>& rows);

}  // namespace etc::cli
