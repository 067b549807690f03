// What a ReducedProduct stands on: the products with weights of one shape on one kind of instructions.
#pragma once

#include <cstdint>
#include <memory>

#include "etc_core/base/compute_type.h"
#include "etc_core/ops/cpu/reduced_product.h"

namespace etc::ops::cpu {

// Functions as in ReducedProduct. Made once per shape and shared by all threads.
class ReducedKernel {
 public:
  virtual ~ReducedKernel() = default;
  virtual void begin() const {}
  virtual void end() const {}
  virtual std::int64_t row_bytes() const = 0;
  virtual std::int64_t group_cols() const = 0;
  virtual std::int64_t packed_bytes() const = 0;
  virtual std::int64_t scratch_bytes(std::int64_t rows) const = 0;
  virtual void pack(const void* w, void* packed) const = 0;
  virtual void run(const ReducedRun& of) const = 0;
};

// Null where the processor has no matrix tiles (AMX) for the type.
std::unique_ptr<ReducedKernel> amx_kernel(ComputeType compute, std::int64_t n, std::int64_t k);

// Null where it has no dot products for the type (the BF16 or VNNI part of AVX-512).
std::unique_ptr<ReducedKernel> avx512_kernel(ComputeType compute, std::int64_t n, std::int64_t k);

// Bytes on any processor.
std::unique_ptr<ReducedKernel> int8_pairs_kernel(std::int64_t n, std::int64_t k);

}  // namespace etc::ops::cpu
