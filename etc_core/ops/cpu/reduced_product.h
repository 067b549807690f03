// One tile's product with operands of fewer bits, on the calling thread; the weights lie as the library likes them.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"

namespace etc::ops::cpu {

// y [m, n] = x [m, k]·W [k, n], row-major without gaps.
//   bf16: x and W bf16, y fp32, summed in fp32        int8: x unsigned, W signed bytes, y and sums int32
// With equal m, n, k the bits of a row of y depend on that row of x and on W only. Throws Error (from the constructor)
// when the library has no such product on this processor.
class ReducedProduct {
 public:
  ReducedProduct(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k);

  std::int64_t packed_bytes() const;
  std::int64_t scratch_bytes() const;                  // of one run
  bool packs_like(const ReducedProduct& other) const;  // whether packed weights of one serve the other
  void pack(const void* w, void* packed) const;        // w [k, n] bf16 or signed bytes
  void run(const void* x, const void* packed, void* scratch, void* y) const;

 private:
  const void* primitive_;  // the library's, shared by all products of this shape
  ComputeType compute_;
  std::int64_t n_, k_;
};

}  // namespace etc::ops::cpu
