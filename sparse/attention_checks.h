// Argument checks of the attention operator. Messages: `operator: what is wrong: expected …, got …`.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "sparse/attention.h"
#include "sparse/attention_types.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// The sizes against which an operator's tensors are checked.
struct AttentionChecks {
  const AttentionTiles& tiles;
  std::int64_t heads, head_size;              // N, D
  ElementType rows_type = ElementType::fp32;  // of all rows

  void sizes() const;

  // `rows` must be [queries, N, D] or [keys of set t, N, D]; empty tensors may be null.
  void query_rows(const char* name, const Rows& rows) const;
  void query_rows(const char* name, const MutableRows& rows) const;
  void key_rows(const char* name, int t, const Rows& rows) const;
  void key_rows(const char* name, int t, const MutableRows& rows) const;
  void pointer(const char* name, const void* pointer, std::int64_t elements) const;

  void scale(float given) const;

  // A table must have a row for every label.
  void table(const RelativeTable& table) const;
  void table_gradients(const RelativeTable& table, const RelativeTableGradients& gradients) const;
  void dropout(const DropoutArgs& dropout) const;
  // Throws Error unless compute is fp32, or bf16 with a table that the device supports in bf16.
  void compute(Device device, const AttentionInputs& inputs) const;

  // Running scores of key set t.
  void scores(int t, const TypeScores& scores) const;
  void scores(int t, const TypeScoreGradients& scores) const;

  // Useful floating-point operations of `products` products over the visible pairs of both key sets: 2·D per pair and
  // product.
  profiler::Work work(int products) const;

 private:
  void rows(const char* name, const char* type, const Rows& rows, std::int64_t expected) const;
  void alignment(const char* type, const void* pointer) const;
};

// A visible pair's score or running sum is out of the range of C or not a number, because the model diverges.
class ScoresOutOfRange : public Error {
 public:
  using Error::Error;
};

// Throws ScoresOutOfRange for this operator, type and layer.
[[noreturn]] void fail_scores_out_of_range(const char* op, AttentionType type, std::int64_t layer);

}  // namespace etc::sparse
