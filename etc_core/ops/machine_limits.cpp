#include "etc_core/ops/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "etc_core/base/buffer.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/linear.h"

namespace etc::ops {

namespace {

constexpr int kTurns = 5;  // the first is a warm-up; the best counts

template <typename Call>
double best_seconds(Call&& call) {
  double best = 1e30;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (turn > 0) best = std::min(best, spent.count());
  }
  return best;
}

double operations_per_second(ComputeType compute) {
  constexpr std::int64_t kRows = 1024, kSize = 1024;
  const std::vector<float> weight(kSize * kSize, 1e-3f), x(kRows * kSize, 1.0f);
  std::vector<float> y(kRows * kSize);
  const PackedWeights packed = pack_weights(Device::cpu, {weight.data(), kSize, kSize}, compute, Purpose::scratch);
  LinearForward args{.rows = kRows,
                     .in = kSize,
                     .out = kSize,
                     .x = x.data(),
                     .x_stride = kSize,
                     .packed = &packed,
                     .y = y.data(),
                     .y_stride = kSize};
  return 2.0 * kRows * kSize * kSize / best_seconds([&] { linear(Device::cpu, args); });
}

double bytes_per_second() {
  constexpr std::int64_t kBytes = std::int64_t{128} << 20, kTask = std::int64_t{1} << 20;  // larger than caches
  Bytes from(kBytes, Purpose::scratch), to(kBytes, Purpose::scratch);
  const auto copy = [&] {
    parallel_for(kBytes / kTask, [&](std::int64_t task) {
      std::memcpy(static_cast<char*>(to.data()) + task * kTask, static_cast<const char*>(from.data()) + task * kTask,
                  kTask);
    });
  };
  std::memset(from.data(), 1, kBytes);
  return 2.0 * static_cast<double>(kBytes) / best_seconds(copy);
}

}  // namespace

MachineLimits measure_machine_limits() {
  MachineLimits limits;
  for (int i = 0; i < kComputeTypes; ++i) {
    const auto compute = static_cast<ComputeType>(i);
    if (cpu_offers(compute)) limits.operations_per_second[i] = operations_per_second(compute);
  }
  limits.bytes_per_second = bytes_per_second();
  return limits;
}

}  // namespace etc::ops
