// Sums and maxima over a block's threads in a fixed order, and the rows of a ragged batch.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/simt.h"
#include "etc_core/base/random.h"
#include "etc_core/ops/cuda/params.h"

namespace etc::ops::cuda {

// Sum over a block of kThreads, the same on every thread. `shared`: one element per warp; reusable afterwards.
template <int kThreads>
ETC_DEVICE float block_sum(float x, const simt::SharedTile<float>& shared) {
  // Butterfly reduction: every lane adds the value of the lane whose index differs in one bit; after five steps all
  // lanes have the same sum.
  for (int mask = 1; mask < simt::kWarp; mask *= 2) x += simt::shuffle_xor(x, mask);
  if (simt::lane_index() == 0) shared.store(simt::thread_index() / simt::kWarp, x);
  simt::sync_block();
  float sum = 0.0f;
  for (int warp = 0; warp < kThreads / simt::kWarp; ++warp) sum += shared.load(warp);
  simt::sync_block();
  return sum;
}

// The same in double, as a tree in shared memory (shuffles move 32 bits). `shared`: kThreads elements.
template <int kThreads>
ETC_DEVICE double block_sum(double x, const simt::SharedTile<double>& shared) {
  const int thread = simt::thread_index();
  shared.store(thread, x);
  simt::sync_block();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared.store(thread, shared.load(thread) + shared.load(thread + half));
    simt::sync_block();
  }
  const double sum = shared.load(0);
  simt::sync_block();
  return sum;
}

// The maximum over a block, as a tree in shared memory. nan propagates, as on the CPU: `other <= own` is false for it,
// and a nan that is already kept is not replaced. `shared`: kThreads elements; reusable afterwards.
template <int kThreads>
ETC_DEVICE double block_max(double x, const simt::SharedTile<double>& shared) {
  const int thread = simt::thread_index();
  shared.store(thread, x);
  simt::sync_block();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      const double own = shared.load(thread), other = shared.load(thread + half);
      if (!(other <= own)) shared.store(thread, own == own ? other : own);
    }
    simt::sync_block();
  }
  const double max = shared.load(0);
  simt::sync_block();
  return max;
}

// The dropout stream and token of one row.
struct RowStream {
  std::uint64_t key = 0;
  std::uint32_t token = 0;
};

// Stream and token of a row of a ragged batch; {} without dropout. Every thread of the row does its own binary search
// over the B offsets; all threads read the same offsets.
ETC_DEVICE RowStream row_stream(const DropoutRows& dropout, std::int64_t row) {
  if (dropout.offsets.size == 0) return {};
  // The last example that begins at or before the row.
  std::int64_t low = 0, high = dropout.keys.size;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    if (simt::load(dropout.offsets, middle) <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return {simt::load(dropout.keys, low), static_cast<std::uint32_t>(row - simt::load(dropout.offsets, low))};
}

// dropout(value) of one element. A Philox block holds the words of four columns, of which one is used; threads of
// adjacent columns recompute the same block instead of exchanging it.
ETC_DEVICE float dropped(const DropoutRows& dropout, const RowStream& stream, std::int64_t column, float value) {
  if (dropout.offsets.size == 0) return value;
  const Philox4 block = dropout_block(stream.key, 0, stream.token, static_cast<std::uint32_t>(column / 4));
  const std::uint32_t low = column % 2 == 0 ? block[0] : block[1], high = column % 2 == 0 ? block[2] : block[3];
  return (column % 4 < 2 ? low : high) >= dropout.threshold ? value * dropout.kept_scale : 0.0f;
}

}  // namespace etc::ops::cuda
