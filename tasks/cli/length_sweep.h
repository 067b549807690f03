// Time and memory of one encoder call against the sequence length: what `etc benchmark` measures and forecasts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/nn/etc_config.h"

namespace etc::cli {

enum class SweepMode { infer, train };

struct SweepOptions {
  EtcConfig model;                    // its residual keys are replaced by `residual`
  std::vector<std::int64_t> lengths;  // L, one example each
  std::vector<std::string> residual;  // "off", "sum", "mean"
  SweepMode mode = SweepMode::infer;
  std::vector<ComputeType> compute = {ComputeType::fp32};  // of inference; training is fp32
  std::int64_t tokens_per_global = 16;                     // G = L / this, rounded up
  std::int64_t repeats = 3;                                // timed, after one call that is not
  bool forecast_only = false;                              // memory alone, and nothing is computed
};

// One point.
struct SweepRow {
  std::string residual;
  ComputeType compute = ComputeType::fp32;
  std::int64_t length = 0;       // L
  std::int64_t globals = 0;      // G
  MemoryReport forecast;         // expected peak of one call, weights included (nn/count_memory.h)
  double seconds = 0;            // median of the repeats; 0: not measured
  double cpu_seconds = 0;        // of all threads; median of the repeats
  double tokens_per_second = 0;  // long tokens
  MemoryReport memory;           // measured peak
};

// infer: a forward pass. train: forward, backward, one AdamW update. Random tokens in blocks of tokens_per_global, each
// with its global token; weights freshly drawn.
std::vector<SweepRow> sweep_lengths(const SweepOptions& options);

// Purposes are split as measured, or as forecast where nothing was measured.
std::string sweep_table(const std::vector<SweepRow>& rows);
std::string sweep_csv(const std::vector<SweepRow>& rows);

// Writes benchmark.csv and benchmark.gnuplot into the folder and, where gnuplot is installed, time.svg and memory.svg.
// Returns whether the pictures were drawn.
bool write_sweep(const std::vector<SweepRow>& rows, const std::filesystem::path& folder);

}  // namespace etc::cli
