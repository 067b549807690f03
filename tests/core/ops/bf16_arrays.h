// Operators on arrays of bf16, with the same cases for every device that keeps them. Expected: the operator's result on
// fp32 arrays of the same numbers, rounded.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/ops/linear.h"

namespace etc::test {

// An array of bf16 with a guard zone after it that an operator must not change.
class Bf16Array {
 public:
  explicit Bf16Array(const std::vector<float>& values);
  explicit Bf16Array(std::int64_t size, float initial = 0);
  Bf16* data() { return all_.data(); }
  std::vector<float> values() const;
  bool guard_intact() const;

 private:
  std::size_t size_;
  std::vector<Bf16> all_;
};

// Every number rounded to bf16.
std::vector<float> rounded(std::vector<float> values);

// `gap`: the strides of x, dx, y and dz exceed the row length by this many numbers.
struct GappedSizes {
  std::int64_t rows, in, out, gap;
};

// A call of linear() with random numbers that bf16 represents exactly.
struct LayerCase {
  Device device = Device::cpu;
  GappedSizes sizes = {};
  ops::WeightLayout layout = ops::WeightLayout::in_out;
  ComputeType compute = ComputeType::bf16;
  ops::Activation activation = ops::Activation::linear;
  bool kept = false;  // z
  bool packed = false;
};
struct LayerResult {
  std::vector<float> y, z;
};
LayerResult run_layer(const LayerCase& of, bool x_bf16, bool y_bf16);

// A call of linear_backward() with such numbers.
struct GradientCase {
  Device device = Device::cpu;
  GappedSizes sizes = {};
  ops::WeightLayout layout = ops::WeightLayout::in_out;
  bool add = false;        // dx +=
  bool bias_only = false;  // without dx and dW
};
// Which of its arrays are bf16.
struct GradientTypes {
  bool dz, x, dx;
};
struct GradientResult {
  std::vector<float> dx, dweight, dbias;
};
GradientResult run_gradients(const GradientCase& of, const GradientTypes& bf16);

// Checks of whole operators.
void check_bf16_activations_and_sums(Device device, const std::vector<std::int64_t>& sizes);
void check_bf16_norms(Device device, std::int64_t rows, const std::vector<std::int64_t>& widths);
void check_bf16_norm_gradients(Device device, std::int64_t rows, const std::vector<std::int64_t>& widths);
void check_bf16_refusals(Device device);

}  // namespace etc::test
