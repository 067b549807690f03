// The implementation behind ReducedProduct: products with weights of one shape for one instruction set.
#pragma once

#include <cstdint>
#include <memory>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/cpu/reduced_product.h"

namespace etc::ops::cpu {

// The functions mean the same as in ReducedProduct. Created once per shape and shared by all threads.
class ReducedKernel {
 public:
  virtual ~ReducedKernel() = default;
  virtual void begin() const {}
  virtual void end() const {}
  virtual std::int64_t row_bytes() const = 0;
  virtual std::int64_t part_bytes() const { return row_bytes(); }
  virtual std::int64_t group_cols() const = 0;
  virtual std::int64_t packed_bytes() const = 0;
  virtual std::int64_t scratch_bytes(std::int64_t rows) const = 0;
  virtual void pack(const void* w, void* packed) const = 0;
  // All kernels but those of int8 implement it.
  virtual void round_and_pack(const PanelBlock&, void*) const { fail("linear", "weights of int8 have scales"); }
  virtual void run(const ReducedRun& of) const = 0;
};

// Null where the processor has no matrix tiles (AMX) for the type.
std::unique_ptr<ReducedKernel> amx_kernel(ComputeType compute, std::int64_t n, std::int64_t k);

// Null where the processor has no dot products for the type (AVX-512 BF16 or VNNI).
std::unique_ptr<ReducedKernel> avx512_kernel(ComputeType compute, std::int64_t n, std::int64_t k);

// int8 products on any processor.
std::unique_ptr<ReducedKernel> int8_pairs_kernel(std::int64_t n, std::int64_t k);

}  // namespace etc::ops::cpu
