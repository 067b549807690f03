// Description of dW and db of a dense layer for the CPU kernels.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/ops/cpu/either_type.h"

namespace etc::ops::cpu {

// Tokens are summed in blocks of this many, in order.
inline constexpr std::int64_t kTokenBlock = 512;

// dw [p, q] (= or +=) aᵀ·b for a [rows, p], b [rows, q]; where the pointers are set, the column sums of a and b are added to
// a_sums and b_sums. In fp32 products a and b are fp32.
struct WeightGradient {
  std::int64_t rows, p, q;
  Numbers a;
  std::int64_t a_stride;
  Numbers b;
  std::int64_t b_stride;
  float* dw;
  bool add;  // false: dw =, true: dw +=
  float* a_sums;
  float* b_sums;

  // The same without the first tokens: their products are in dw by then.
  WeightGradient after(std::int64_t tokens) const {
    WeightGradient rest = *this;
    rest.rows -= tokens;
    rest.a = a + tokens * a_stride;
    rest.b = b + tokens * b_stride;
    rest.add = true;
    return rest;
  }
};

void weight_gradient_fp32(const WeightGradient& gradient);

// In bf16: rounds a and b unless they are given in it; sums in fp32. In fp32, if fp32_in_parts() (reduced_product.h): from
// bf16 parts. The column sums use the unrounded a and b.
void weight_gradient_reduced(ComputeType compute, const WeightGradient& gradient);

// Bytes of scratch that a call takes on the calling thread.
std::int64_t weight_gradient_fp32_scratch(std::int64_t rows, std::int64_t p, std::int64_t q);
std::int64_t weight_gradient_reduced_scratch(ComputeType compute, std::int64_t rows, std::int64_t p, std::int64_t q);

}  // namespace etc::ops::cpu
