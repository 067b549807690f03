// The small kernels of backward: row sums before it, sums of partial results after it, each in a fixed order.
#pragma once

#include <cstdint>

#include "etc_core/base/integers.h"
#include "sparse/cuda/query_block.h"

namespace etc::sparse::cuda {

// delta = dout·out. A warp computes one row of one head: block x is four rows, block y a head.
// Products and sums are fp32 whatever the type of out and dout: delta is subtracted from dp, so rounding would be
// visible.
struct DeltaKernel : simt::BlockOf<kBlockThreads> {
  using Params = DeltaParams;
  static const char* name() { return "attention backward, delta"; }
  static std::int64_t blocks(std::int64_t rows) { return ceil_div(rows, kWarpsPerBlock); }

  static ETC_DEVICE void run(const Params& p) {
    // A warp per row: neighbouring lanes read neighbouring components.
    const std::int64_t row = simt::block_x() * kWarpsPerBlock + simt::warp_index(), head = simt::block_y();
    if (row >= p.sizes.queries) return;
    const std::int64_t out = head * p.out.head_stride + row * p.out.row_stride;
    const std::int64_t dout = head * p.dout.head_stride + row * p.dout.row_stride;
    // Each lane sums every 32nd component, then a butterfly reduction gives every lane the same sum, in an order that
    // depends on D alone.
    float sum = 0.0f;
    for (int d = simt::lane_index(); d < p.sizes.head_size; d += simt::kWarp) {
      sum = simt::fma(number(p.out, out + d), number(p.dout, dout + d), sum);
    }
    for (int mask = 1; mask < simt::kWarp; mask *= 2) sum += simt::shuffle_xor(sum, mask);
    if (simt::lane_index() == 0) simt::store(p.delta, head * p.sizes.queries + row, sum);
  }
};

// dq and dtable of queries whose keys were split: block x is a set of queries, block y a head.
// The thread that owns an element sums its slots in order.
struct SumQueriesKernel : simt::BlockOf<128> {
  using Params = SumQueriesParams;
  static const char* name() { return "attention backward, sums of dq"; }

  static ETC_DEVICE void run(const Params& p) {
    const SplitQueries split = simt::load(p.split_queries, simt::block_x());
    const std::int64_t head = head_of(p.own_heads, simt::block_x());
    const int head_size = p.sizes.head_size, labels = p.sizes.labels, width = head_size + labels;
    // A slot holds all heads of one item.
    const std::int64_t part = p.sizes.heads * kBlockQueries * width;  // from slot to slot
    const std::int64_t slots = (split.first_slot * p.sizes.heads + head) * kBlockQueries * width;
    const auto sum_of = [&](int query, int column) {
      float sum = 0.0f;
      for (int n = 0; n < split.slots; ++n) sum += simt::load(p.slots, slots + query * width + column + n * part);
      return sum;
    };
    // Elements of a slot are numbered [queries, D + R]. The first D columns are dq, two of them per thread;
    const int pairs = ceil_div(head_size, 2);
    for (int i = simt::thread_index(); i < split.queries * pairs; i += kThreads) {
      const int query = i / pairs, d = i % pairs * 2;
      store_two(place_of(p.dq, split.query_row + query, head, head_size), d, head_size, sum_of(query, d),
                d + 1 < head_size ? sum_of(query, d + 1) : 0.0f);
    }
    // the others are dtable.
    for (int i = simt::thread_index(); i < split.queries * labels; i += kThreads) {
      const int query = i / labels, label = i % labels;
      simt::store(p.dtable, (head * p.sizes.queries + split.query_row + query) * labels + label,
                  sum_of(query, head_size + label));
    }
  }
};

// dk and dv of keys whose queries were split: block x is a tile of keys, block y a head.
// A slot holds dk and dv of its keys side by side: [kTileKeys, 2 D].
struct SumKeysKernel : simt::BlockOf<128> {
  using Params = SumKeysParams;
  static const char* name() { return "attention backward, sums of dk and dv"; }

  static ETC_DEVICE void run(const Params& p) {
    const SplitKeys split = simt::load(p.split_keys, simt::block_x());
    const std::int64_t head = head_of(p.own_heads, simt::block_x());
    const int head_size = p.sizes.head_size, width = 2 * head_size;
    const std::int64_t part = p.sizes.heads * kTileKeys * width;
    const Output& dk = split.type == 0 ? p.dk[0] : p.dk[1];
    const Output& dv = split.type == 0 ? p.dv[0] : p.dv[1];
    const std::int64_t slots = (split.first_slot * p.sizes.heads + head) * kTileKeys * width;
    const auto sum_of = [&](int key, int column) {
      float sum = 0.0f;
      for (int n = 0; n < split.slots; ++n) sum += simt::load(p.slots, slots + key * width + column + n * part);
      return sum;
    };
    // Elements of a slot are numbered [keys, 2 D]: the first D columns are dk, the others dv. Two per thread.
    const int pairs = ceil_div(head_size, 2);
    for (int i = simt::thread_index(); i < split.keys * 2 * pairs; i += kThreads) {
      const int key = i / (2 * pairs), half = i / pairs % 2, d = i % pairs * 2, column = half * head_size + d;
      store_two(place_of(half == 0 ? dk : dv, split.key_row + key, head, head_size), d, head_size, sum_of(key, column),
                d + 1 < head_size ? sum_of(key, column + 1) : 0.0f);
    }
  }
};

}  // namespace etc::sparse::cuda
