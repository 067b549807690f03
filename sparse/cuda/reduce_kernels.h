// The small kernels of backward: row sums before it, sums of partial results after it, each in a fixed order.
#pragma once

#include <cstdint>

#include "sparse/cuda/products.h"

namespace etc::sparse::cuda {

// delta = dout·out. A warp takes one row of one head: block x four rows, block y a head.
struct DeltaKernel {
  using Params = DeltaParams;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = 0;
  static const char* name() { return "attention backward, delta"; }
  static std::int64_t blocks(std::int64_t rows) { return (rows + kWarpsPerBlock - 1) / kWarpsPerBlock; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t row = simt::block_x() * kWarpsPerBlock + simt::warp_index(), head = simt::block_y();
    if (row >= p.sizes.queries) return;
    const std::int64_t out = head * p.out.head_stride + row * p.out.row_stride;
    const std::int64_t dout = head * p.dout.head_stride + row * p.dout.row_stride;
    float sum = 0.0f;
    for (int d = simt::lane_index(); d < p.sizes.head_size; d += simt::kWarp) {
      sum = simt::fma(simt::load(p.out.values, out + d), simt::load(p.dout.values, dout + d), sum);
    }
    for (int mask = 1; mask < simt::kWarp; mask *= 2) sum += simt::shuffle_xor(sum, mask);
    if (simt::lane_index() == 0) simt::store(p.delta, head * p.sizes.queries + row, sum);
  }
};

// dq and dtable of queries whose keys were split: block x is a set of queries, block y a head.
struct SumQueriesKernel {
  using Params = SumQueriesParams;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = 0;
  static const char* name() { return "attention backward, sums of dq"; }

  static ETC_DEVICE void run(const Params& p) {
    const SplitQueries split = simt::load(p.split_queries, simt::block_x());
    const std::int64_t head = simt::block_y();
    const int head_size = p.sizes.head_size, labels = p.sizes.labels, width = head_size + labels;
    const std::int64_t part = p.sizes.heads * kBlockQueries * width;  // from slot to slot
    for (int i = simt::thread_index(); i < split.queries * width; i += kThreads) {
      const std::int64_t first = (split.first_slot * p.sizes.heads + head) * kBlockQueries * width + i;
      float sum = 0.0f;
      for (int n = 0; n < split.slots; ++n) sum += simt::load(p.slots, first + n * part);
      const std::int64_t row = split.query_row + i / width;
      const int column = i % width;
      if (column < head_size) {
        simt::store(p.dq.values, row * p.dq.row_stride + head * head_size + column, sum);
      } else {
        simt::store(p.dtable, (head * p.sizes.queries + row) * labels + column - head_size, sum);
      }
    }
  }
};

// dk and dv of keys whose queries were split: block x is a tile of keys, block y a head.
struct SumKeysKernel {
  using Params = SumKeysParams;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = 0;
  static const char* name() { return "attention backward, sums of dk and dv"; }

  static ETC_DEVICE void run(const Params& p) {
    const SplitKeys split = simt::load(p.split_keys, simt::block_x());
    const std::int64_t head = simt::block_y();
    const int head_size = p.sizes.head_size, width = 2 * head_size;
    const std::int64_t part = p.sizes.heads * kTileKeys * width;
    const Output& dk = split.type == 0 ? p.dk[0] : p.dk[1];
    const Output& dv = split.type == 0 ? p.dv[0] : p.dv[1];
    for (int i = simt::thread_index(); i < split.keys * width; i += kThreads) {
      const std::int64_t first = (split.first_slot * p.sizes.heads + head) * kTileKeys * width + i;
      float sum = 0.0f;
      for (int n = 0; n < split.slots; ++n) sum += simt::load(p.slots, first + n * part);
      const std::int64_t row = split.key_row + i / width;
      const int column = i % width;
      const Output& to = column < head_size ? dk : dv;
      simt::store(to.values, row * to.row_stride + head * head_size + column % head_size, sum);
    }
  }
};

// forward: table = (q·rel + rel_bias) / sqrt(D), and dtable has the 1/sqrt(D) already; so dq += dtable rel, and per
// kRelativeRows queries (block x; block y is a head) partial sums of dtable q and of dtable.
struct RelativeKernel {
  using Params = RelativeParams;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = 0;
  static const char* name() { return "attention backward, relative terms"; }
  static std::int64_t parts(std::int64_t rows) { return (rows + kRelativeRows - 1) / kRelativeRows; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t head = simt::block_y(), first = simt::block_x() * kRelativeRows;
    const int head_size = p.sizes.head_size, labels = p.sizes.labels;
    const std::int64_t left = p.sizes.queries - first;
    const int rows = left < kRelativeRows ? static_cast<int>(left) : kRelativeRows;
    const std::int64_t dtable = (head * p.sizes.queries + first) * labels;
    for (int i = simt::thread_index(); i < rows * head_size; i += kThreads) {
      const int row = i / head_size, d = i % head_size;
      const std::int64_t place = (first + row) * p.dq.row_stride + head * head_size + d;
      float sum = simt::load(p.dq.values, place);
      for (int r = 0; r < labels; ++r) {
        sum = simt::fma(simt::load(p.dtable, dtable + row * labels + r),
                        simt::load(p.rel, (r * p.sizes.heads + head) * head_size + d), sum);
      }
      simt::store(p.dq.values, place, sum);
    }
    const std::int64_t partial = (simt::block_x() * p.sizes.heads + head) * labels * (head_size + 1);
    for (int i = simt::thread_index(); i < labels * (head_size + 1); i += kThreads) {
      const int r = i / (head_size + 1), d = i % (head_size + 1);
      float sum = 0.0f;
      for (int row = 0; row < rows; ++row) {
        const float weight = simt::load(p.dtable, dtable + row * labels + r);
        const float q =
            d < head_size ? simt::load(p.q.values, head * p.q.head_stride + (first + row) * p.q.row_stride + d) : 1.0f;
        sum = simt::fma(weight, q, sum);
      }
      simt::store(p.partial, partial + i, sum);
    }
  }
};

// drel += the partial sums, in order; drel_bias likewise. A thread takes one element, block y is a head.
struct TableSumKernel {
  using Params = TableSumParams;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = 0;
  static const char* name() { return "attention backward, sums of the tables"; }
  static std::int64_t blocks(const AttentionSizes& sizes) {
    return (std::int64_t{sizes.labels} * (sizes.head_size + 1) + kThreads - 1) / kThreads;
  }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t head = simt::block_y(), i = simt::block_x() * kThreads + simt::thread_index();
    const int head_size = p.sizes.head_size;
    const std::int64_t width = std::int64_t{p.sizes.labels} * (head_size + 1);
    if (i >= width) return;
    float sum = 0.0f;
    for (std::int64_t n = 0; n < p.parts; ++n) sum += simt::load(p.partial, (n * p.sizes.heads + head) * width + i);
    const std::int64_t r = i / (head_size + 1), d = i % (head_size + 1), row = r * p.sizes.heads + head;
    if (d < head_size) {
      simt::store(p.drel, row * head_size + d, simt::load(p.drel, row * head_size + d) + sum);
    } else if (p.drel_bias.size > 0) {
      simt::store(p.drel_bias, row, simt::load(p.drel_bias, row) + sum);
    }
  }
};

}  // namespace etc::sparse::cuda
