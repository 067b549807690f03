// What a ReducedProduct stands on: the products of one shape, by the library or by kernels of our own.
#pragma once

#include <cstdint>
#include <memory>

#include "etc_core/base/compute_type.h"

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
  virtual std::int64_t scratch_bytes() const = 0;
  virtual bool packs_like(const ReducedKernel& other) const = 0;
  virtual void pack(const void* w, void* packed) const = 0;
  virtual void run(const void* x, const void* packed, std::int64_t first_col, void* scratch, void* y) const = 0;
};

// Null where the processor has no matrix tiles (AMX) for the type.
std::unique_ptr<ReducedKernel> amx_kernel(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k);

// Null where the processor has no instructions (AVX-512 with BF16 or VNNI) for the library's exact products of the
// type: without them its sums of bytes saturate, and bf16 it has not at all.
std::unique_ptr<ReducedKernel> library_kernel(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k);

// Bytes on any processor.
std::unique_ptr<ReducedKernel> int8_pairs_kernel(std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace etc::ops::cpu
