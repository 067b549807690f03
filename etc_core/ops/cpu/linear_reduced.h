// Dense layers whose operands are bf16, int8, or fp32 in bf16 parts (reduced_product.h): the counterpart of the fp32 tiles
// in panel_product.cpp.
#pragma once

#include <cstddef>

#include "etc_core/ops/cpu/dense_product.h"
#include "etc_core/ops/linear.h"

namespace etc::ops::cpu {

// Size of packed W [k, n].
std::int64_t reduced_bytes(ComputeType compute, std::int64_t k, std::int64_t n);

// Columns [first, first + count) of W [k, n], which is stored [n, k] with layout out_in.
struct WeightColumns {
  const float* weight;
  WeightLayout layout;
  std::int64_t k, n;
  std::int64_t first, count;
};

// Packs the columns into reduced_bytes(compute, k, count) bytes. Throws Error when the processor has no products of
// that type.
void pack_reduced(ComputeType compute, const WeightColumns& from, std::byte* packed);

void multiply_reduced(const DenseProduct& product, ComputeType compute, const std::byte* packed);

// Bytes of scratch that multiply_reduced takes on the calling thread for `rows` rows.
std::int64_t reduced_scratch(ComputeType compute, std::int64_t rows, std::int64_t k, std::int64_t n);

// Packs W a group of panels at a time into scratch and multiplies.
void multiply_reduced_packing(const DenseProduct& product, ComputeType compute, const float* weight,
                              WeightLayout layout);

// The same for multiply_reduced_packing.
std::int64_t reduced_packing_scratch(ComputeType compute, std::int64_t rows, std::int64_t k, std::int64_t n);

}  // namespace etc::ops::cpu
