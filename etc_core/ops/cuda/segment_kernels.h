// Sums and copies of runs of rows: the CPU's sums in the CPU's order.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/simt.h"
#include "etc_core/ops/cuda/params.h"

namespace etc::ops::cuda {

inline constexpr int kSegmentThreads = 128;

// Block x is a segment, block y a panel of columns, a thread a column of all the segment's rows.
struct SumSegmentsKernel : simt::BlockOf<kSegmentThreads> {
  using Params = SegmentParams;
  static const char* name() { return "sum of segments"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_y() * kThreads + simt::thread_index(), segment = simt::block_x();
    if (column >= p.cols) return;
    // place: index of the sum in of_segments [S, H]
    const std::int64_t place = segment * p.cols + column, end = simt::load(p.offsets, segment + 1);
    // One thread adds all rows of its column, in order. Segments are words of a few tokens, so no reduction tree is
    // needed.
    float sum = p.add ? simt::load(p.to, place) : 0.0f;
    for (std::int64_t row = simt::load(p.offsets, segment); row < end; ++row) {
      sum += simt::load(p.from, row * p.cols + column);
    }
    simt::store(p.to, place, sum);
  }
};

// The same geometry for the opposite direction: a segment's value is read once and written to all its rows.
struct SpreadSegmentsKernel : simt::BlockOf<kSegmentThreads> {
  using Params = SegmentParams;
  static const char* name() { return "spread of segments"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_y() * kThreads + simt::thread_index(), segment = simt::block_x();
    if (column >= p.cols) return;
    const float value = simt::load(p.from, segment * p.cols + column);  // of_segments [S, H]
    const std::int64_t end = simt::load(p.offsets, segment + 1);
    for (std::int64_t row = simt::load(p.offsets, segment); row < end; ++row) {
      const std::int64_t place = row * p.cols + column;
      simt::store(p.to, place, p.add ? simt::load(p.to, place) + value : value);
    }
  }
};

}  // namespace etc::ops::cuda
