#include "etc_core/ops/fastest_compute.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "etc_core/base/cpu_features.h"
#include "etc_core/ops/linear.h"

namespace etc::ops {

namespace {

constexpr double kWorthwhile = 1.25;  // below this ratio, rounding the weights is not worthwhile

// Measures one dense layer of base size in each type; the types alternate, and the shortest time counts.
class Trial {
 public:
  explicit Trial(Device device) : device_(device) {}

  void add(ComputeType type) {
    packed_.push_back(pack_weights(device_, {weight_.data(), kSize, kSize}, type, Purpose::scratch));
    seconds_.push_back(std::numeric_limits<double>::infinity());
  }

  void take_turns() {
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      LinearForward args{.rows = kRows,
                         .in = kSize,
                         .out = kSize,
                         .x = x_.data(),
                         .x_stride = kSize,
                         .packed = &packed_[i],
                         .y = y_.data(),
                         .y_stride = kSize};
      const auto start = std::chrono::steady_clock::now();
      linear(device_, args);
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      seconds_[i] = std::min(seconds_[i], spent.count());
    }
  }

  const std::vector<double>& seconds() const { return seconds_; }

 private:
  static constexpr std::int64_t kRows = 256, kSize = 768;
  Device device_;
  std::vector<float> weight_ = std::vector<float>(kSize * kSize, 1e-3f), x_ = std::vector<float>(kRows * kSize, 1.0f),
                     y_ = std::vector<float>(kRows * kSize);
  std::vector<PackedWeights> packed_;
  std::vector<double> seconds_;
};

ComputeType measure(Device device) {
  if (!cpu_offers(ComputeType::bf16)) return ComputeType::fp32;
  constexpr int kTurns = 4;  // the first is a warm-up
  Trial trial(device);
  trial.add(ComputeType::fp32);
  trial.add(ComputeType::bf16);
  for (int turn = 0; turn < kTurns; ++turn) trial.take_turns();
  return trial.seconds()[0] > kWorthwhile * trial.seconds()[1] ? ComputeType::bf16 : ComputeType::fp32;
}

}  // namespace

ComputeType fastest_compute(Device device) {
  static const ComputeType fastest = measure(device);
  return fastest;
}

}  // namespace etc::ops
