// One tile's product with operands of fewer bits, on the calling thread; the weights lie as the processor likes them.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/ops/cpu/next_rows.h"

namespace etc::ops::cpu {

class ReducedKernel;

// Some rows by one group of columns.
struct ReducedRun {
  std::int64_t rows = 0;    // a multiple of 16
  const void* x = nullptr;  // [rows, k], rows row_bytes() apart
  const void* packed = nullptr;
  std::int64_t first_col = 0;  // of the group
  void* scratch = nullptr;     // scratch_bytes(rows)
  void* y = nullptr;           // [rows, min(group_cols, n - first_col)], without gaps
  NextRows next = {};          // for y, once it is finished
};

// y [rows, n] = x [rows, k]·W [k, n], a group of columns at a time.
//   bf16: x and W bf16, y fp32, summed in fp32        int8: x unsigned, W signed bytes, y and sums int32
// The bits of a row of y depend on that row of x and on W only. Throws Error (from the constructor) when there is no
// such product on this processor.
class ReducedProduct {
 public:
  ReducedProduct(ComputeType compute, std::int64_t n, std::int64_t k);

  // From one row of x to the next, at least k numbers; what lies between the rows is zero.
  std::int64_t row_bytes() const;
  std::int64_t group_cols() const;  // columns of a group; n is not always a multiple
  std::int64_t packed_bytes() const;
  std::int64_t scratch_bytes(std::int64_t rows) const;  // of one run
  void pack(const void* w, void* packed) const;         // w [k, n] bf16 or signed bytes, without gaps
  // Within a ReducedUse on the same thread. Faster with x, packed and y on borders of 64 bytes.
  void run(const ReducedRun& of) const;

 private:
  friend class ReducedUse;
  const ReducedKernel* kernel_;  // shared by all products of this shape
};

// Sets the thread up for runs of products of this type, for the duration of a task without other libraries' products.
class ReducedUse : NotCopied {
 public:
  explicit ReducedUse(const ReducedProduct& product);
  ~ReducedUse();

 private:
  const ReducedKernel* kernel_;
};

}  // namespace etc::ops::cpu
