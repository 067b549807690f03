// Parameters of the kernels of linear attention: operands, lists of tasks, and where sums are stored.
//
// C++17: host and device read this header.
#pragma once

#include <cstdint>

#include "sparse/cuda/attention_params.h"

namespace etc::sparse::cuda {

inline constexpr int kPerformerThreads = 256;
inline constexpr int kPerformerRows = 64;  // rows that a block processes at a time, four threads per row
static_assert(kPerformerThreads == 4 * kPerformerRows);

// One chunk of rows of one head (performer_layout.h), the work of one block.
struct PerformerTask {
  std::int64_t first_row = 0;         // of the batch
  std::int64_t sum = 0, maximum = 0;  // offsets in the state of the sums it uses (causal: of earlier rows)
  std::int64_t gradient = 0;          // backward by keys: index of the slot with dS of the queries that see the chunk
  std::int32_t rows = 0, head = 0;
};

// One head of one example.
struct PerformerHead {
  std::int64_t sum = 0, maximum = 0;  // offsets in the state; causal: of the first chunk's sums, the others follow
  std::int64_t first_key_slot = 0, first_query_slot = 0;
  std::int32_t key_chunks = 0, query_chunks = 0, head = 0, unused = 0;
};

struct PerformerSizesView {
  std::int64_t heads = 0, queries = 0;  // N, rows of q
  int head_size = 0, features = 0;      // D, m
  // Of sums [padded, stride] with [padded] behind them, as PerformerState lays them out.
  std::int64_t stride = 0, sum_ones = 0, sum_floats = 0;
  std::int64_t workspace_floats = 0;  // of one task
  float scale = 1.0f;                 // sqrt(s), of the projection
  float row_scale = 1.0f;             // s, of |x|^2
  bool causal = false, stabilised = true;
};

// Parameters of every kernel; members that a direction does not use are empty.
struct PerformerParams {
  PerformerSizesView sizes;
  Operand<float> q, k, v, out_rows, dout;
  Span<const float> projection;  // [m, D]
  Span<float> turned;            // [D, m]: its transpose, scaled
  Span<const PerformerTask> query_tasks, key_tasks;
  Span<const PerformerHead> heads;
  Span<float> state;         // performer_state_floats
  Span<float> denominators;  // [N, queries]
  Span<float> slots;         // [tasks, sum_floats]: forward of key chunks; backward of query chunks, one of zeros last
  Span<float> workspaces;    // [tasks, workspace_floats]
  // Per key chunk: the largest u; in backward also the sum of the features' gradients, and that u's row and feature.
  Span<float> largest, slopes;
  Span<std::int64_t> largest_row;
  Span<std::int32_t> largest_feature;
  Output out, dq, dk, dv;
};

}  // namespace etc::sparse::cuda
