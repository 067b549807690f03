// dW and db of a dense layer as the CPU kernels see them.
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/either_type.h"

namespace etc::ops::cpu {

// Tokens are summed in blocks of this many, in order.
inline constexpr std::int64_t kTokenBlock = 512;

// dw [p, q] += aᵀ·b for a [rows, p], b [rows, q]; the column sums of a and of b, where wanted, are added to. In
// products of fp32 both are fp32.
struct WeightGradient {
  std::int64_t rows, p, q;
  Numbers a;
  std::int64_t a_stride;
  Numbers b;
  std::int64_t b_stride;
  float* dw;
  float* a_sums;
  float* b_sums;
};

void weight_gradient_fp32(const WeightGradient& gradient);

// With a and b rounded to bf16 unless they are given in it, sums in fp32 (column sums: of a and b as they are).
void weight_gradient_bf16(const WeightGradient& gradient);

// Bytes of scratch a call takes on its thread.
std::int64_t weight_gradient_fp32_scratch(std::int64_t rows, std::int64_t p, std::int64_t q);
std::int64_t weight_gradient_bf16_scratch(std::int64_t rows, std::int64_t p, std::int64_t q);

}  // namespace etc::ops::cpu
