// Argument checks both operators share. Messages: `operator: what is wrong: expected …, got …`.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/profiler.h"
#include "sparse/attention_types.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

// What an operator's tensors are checked against.
struct AttentionChecks {
  const char* op;
  std::int64_t heads, head_size;  // N, D

  void sizes() const;

  // `rows` must be [letter=expected, N, D] like the tensor `like`; empty tensors may be null.
  void rows(const char* name, const Rows& rows, const char* letter, std::int64_t expected) const;
  void rows(const char* name, const MutableRows& rows, const char* letter, std::int64_t expected) const;
  void pointer(const char* name, const void* pointer, std::int64_t elements) const;

  // The table must be there when labels select vectors, and know every label.
  void table(const RelativeTable& table, const TypeTiles& first, const TypeTiles& second) const;
  void table_gradients(const RelativeTable& table, const RelativeTableGradients& gradients) const;
  void dropout(const DropoutArgs& dropout) const;
  // The cpu multiplies in bf16 only where nothing is trained; cuda does both.
  void forward_compute(Device device, ComputeType compute, const DropoutArgs& dropout) const;
  void backward_compute(Device device, ComputeType compute) const;

  // Useful operations of `products` products over the visible pairs of both types: 2·D per pair and product.
  profiler::Work work(const TypeTiles& first, const TypeTiles& second, int products) const;
  void alignment(const TypeTiles& tiles, const void* pointer) const;
  void scores(const TypeTiles& tiles, const TypeScores& scores) const;
  void scores(const TypeTiles& tiles, const TypeScoreGradients& scores) const;
};

// A visible pair's score or running sum, made by a call with these scores, left the range of C or is not a number.
[[noreturn]] void fail_scores_out_of_range(AttentionType type, std::int64_t layer);

}  // namespace etc::sparse
