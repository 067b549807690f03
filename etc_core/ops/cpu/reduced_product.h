// The product of one tile with operands of bf16, of int8, or of fp32 in bf16 parts, on the calling thread, with weights
// packed for the processor's instructions.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/ops/cpu/next_rows.h"
#include "etc_core/ops/cpu/panels.h"

namespace etc::ops::cpu {

class ReducedKernel;

// Whether fp32 products are computed by these kernels: with AMX, where six products of bf16 parts of both operands
// (word_product.h) take half the time of fp32 multiply-adds, with errors no larger.
bool fp32_in_parts();

// One product of several rows by one group of columns.
struct ReducedRun {
  std::int64_t rows = 0;    // int8: a multiple of 16
  const void* x = nullptr;  // [rows rounded up to 16, k], rows row_bytes() apart
  const void* packed = nullptr;
  std::int64_t first_col = 0;    // of the group
  void* scratch = nullptr;       // scratch_bytes(rows)
  void* y = nullptr;             // [rows, min(group_cols, n - first_col)]
  std::int64_t y_row_bytes = 0;  // from row to row; 0, always with int8: no gaps
  bool add = false;              // y +=, not with int8
  NextRows next = {};            // destination of y once it is finished
};

// y [rows, n] = x [rows, k]·W [k, n], a group of columns at a time.
//   bf16: x and W bf16, y fp32, summed in fp32        int8: x unsigned, W signed bytes, y and sums int32
//   fp32, if fp32_in_parts(): x [rows, 3, k] and W in bf16 parts whose sum is the number, y fp32
// The bits of a row of y depend on that row of x and on W only. The constructor throws Error when this processor has no
// products of that type.
class ReducedProduct {
 public:
  ReducedProduct(ComputeType compute, std::int64_t n, std::int64_t k);

  // Distance between rows of x, and between the parts of a row (one part: row_bytes()); at least k numbers. The gap after
  // a row or part must be zero.
  std::int64_t row_bytes() const;
  std::int64_t part_bytes() const;
  std::int64_t group_cols() const;  // columns of a group; n need not be a multiple
  std::int64_t packed_bytes() const;
  std::int64_t scratch_bytes(std::int64_t rows) const;  // for one run
  void pack(const void* w, void* packed) const;         // w [k, n] bf16 or signed bytes, without gaps
  // bf16: the same for columns of fp32 weights, rounded to nearest even in the same pass; fp32: split in the same pass.
  // w: n columns of at most k rows; zeros follow
  void round_and_pack(const PanelBlock& w, void* packed) const;
  // Call within the lifetime of a ReducedUse on the same thread. Faster with x, packed and y aligned to 64 bytes.
  void run(const ReducedRun& of) const;

 private:
  friend class ReducedUse;
  const ReducedKernel* kernel_;  // shared by all products of this shape
};

// Prepares the thread for runs of products of this type during a task (AMX: tile configuration). No other library may
// compute products in the meantime.
class ReducedUse : NotCopied {
 public:
  explicit ReducedUse(const ReducedProduct& product);
  ~ReducedUse();

 private:
  const ReducedKernel* kernel_;
};

}  // namespace etc::ops::cpu
