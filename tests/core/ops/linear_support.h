// Helpers for tests of dense layers in any number type.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "etc_core/ops/linear.h"
#include "tests/support/numbers.h"

namespace etc::test {

inline constexpr double kUnit = 0x1p-24;  // half an ulp of 1

// Rounding of a sum of `k` products of numbers below 1, by the probabilistic bound: sqrt(k) roundings of sums of at
// most k/4 in size, and twice that to be safe; a bias and an activation round once more each.
inline double product_tolerance(std::int64_t k) {
  return 2 * kUnit * std::sqrt(static_cast<double>(k)) * (static_cast<double>(k) / 4 + 1) + 4 * kUnit;
}

// A matrix whose stride exceeds the row length.
struct Strided {
  Strided(std::int64_t rows_, std::int64_t cols_, std::int64_t gap, std::uint64_t seed, float gap_value = 7e7f)
      : rows(rows_), cols(cols_), stride(cols_ + gap), all(rows_ * (cols_ + gap), gap_value) {
    const auto values = random_floats(rows * cols, seed);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::memcpy(all.data() + i * stride, values.data() + i * cols, static_cast<std::size_t>(cols) * sizeof(float));
    }
  }
  std::vector<float> used() {
    std::vector<float> values;
    for (std::int64_t i = 0; i < rows; ++i) {
      values.insert(values.end(), all.data() + i * stride, all.data() + i * stride + cols);
    }
    return values;
  }
  bool untouched_outside(float gap_value = 7e7f) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = cols; j < stride; ++j) {
        if (all.data()[i * stride + j] != gap_value) return false;
      }
    }
    return all.guards_intact();
  }
  std::int64_t rows, cols, stride;
  Guarded all;
};

inline std::vector<float> flipped(const std::vector<float>& w, std::int64_t rows, std::int64_t cols) {
  std::vector<float> result(w.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      result[static_cast<std::size_t>(j * rows + i)] = w[static_cast<std::size_t>(i * cols + j)];
    }
  }
  return result;
}

struct Sizes {
  std::int64_t rows, in, out;
};

// The common arguments of calls on matrices without gaps: y = x·w.
inline ops::LinearForward layer_of(const Sizes& s, const float* x, const float* w, float* y) {
  return {.rows = s.rows, .in = s.in, .out = s.out, .x = x, .x_stride = s.in, .weight = w, .y = y, .y_stride = s.out};
}

// The same for the backward; the test sets which gradients it requests.
inline ops::LinearBackward gradients_of(const Sizes& s, const float* dz, const float* x) {
  return {.rows = s.rows,
          .in = s.in,
          .out = s.out,
          .dz = dz,
          .dz_stride = s.out,
          .x = x,
          .x_stride = s.in,
          .dx_stride = s.in};
}

// x rounded to bf16, to nearest even.
inline float bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

}  // namespace etc::test
