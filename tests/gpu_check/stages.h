// The stages of gpu-check. Each adds its cases to the report; the backend is open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tests/gpu_check/report.h"

namespace etc::gpu_check {

void smoke(Report& report);      // memory, copies, one kernel, one product
void operators(Report& report);  // dense operators against the CPU's
void kernels(Report& report);    // these, and attention against its reference with the shapes of the tests
// The tiny models compared with the CPU's, and with a pack of golden numbers unless `pack` is empty.
void model(Report& report, const std::filesystem::path& pack);

// Measurements of the attention operators, forward and backward, with and without running scores, in bf16.
struct AttentionBench {
  std::int64_t heads = 12;
  std::vector<std::int64_t> lengths = {512, 2048, 4096, 8192, 32768, 65536}, radii = {84, 255};
  std::vector<std::int64_t> dense_lengths = {512, 4096, 16384};
  int repeats = 5;
  double bytes_per_second = 1;  // of the device's memory, as measured
};
void bench_attention(Report& report, const AttentionBench& bench);
void bench(Report& report);  // these, the device's memory and the base model

}  // namespace etc::gpu_check
