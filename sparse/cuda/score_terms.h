// The terms of a score besides q·k on CUDA: policies of the tile loops, and the small kernels before and after them.
// Where new terms go is in sparse/README.md, "Adding".
//
//   table[n][g][r][i] = scale (q_i·rel[r] + rel_bias[r])           TableKernel, before the attention kernels
//   s_ij = scale q_i·k_j + table[label_ij][i]                      LabelTerms::of_step, in all tile loops
//   dtable[label_ij][i] += ds_ij                                   LabelSums, in QueryGradientKernel
//   dq += dtable rel,  drel += dtable q,  drel_bias += dtable      RelativeKernel and TableSumKernel, after them
//
// Kernels are compiled for each policy (choose_products.h): one without labels has no look-ups and no label sums. Terms
// that need query and key pair by pair, and tables of very many rows, are a third policy (pairwise_terms.h).
#pragma once

#include <cstdint>

#include "etc_core/base/integers.h"
#include "sparse/cuda/pair_terms.h"

namespace etc::sparse::cuda {

struct LabelSums;

// Policy of a call with a relative table. The table of one group is in shared memory [R, kTableStride]. If it does not
// fit there, it is read from global memory as written by TableKernel [R, kGroup].
struct LabelTerms {
  using Sums = LabelSums;
  static constexpr bool kPairwise = false;

  SharedTile<float> shared;  // [R, kTableStride]
  Span<const float> table;   // [N, groups, R, kGroup]
  std::int64_t base = 0;     // of the group, in `table`
  bool in_shared = false;

  // The warp copies its group's table; a sync must follow.   all_shared [kWarpsPerBlock, R, kTableStride]
  template <typename Params>
  ETC_DEVICE void load(const Params& p, const SharedTile<float>& all_shared, std::int64_t head, std::int64_t group) {
    const AttentionSizes& sizes = p.sizes;
    const std::int64_t groups = p.work.types[0].run_offsets.size - 1;
    table = p.table;
    base = (head * groups + group) * sizes.labels * kGroup;
    // All labels are in shared memory, or none.
    in_shared = sizes.shared_labels > 0;
    if (!in_shared) return;
    const int size = sizes.labels * kTableStride;
    shared = all_shared.part(simt::warp_index() * size, size);
    for (int i = simt::lane_index(); i < sizes.labels * kGroup; i += simt::kWarp) {
      shared.store(i / kGroup * kTableStride + i % kGroup, simt::load(table, base + i));
    }
  }

  // Computes what the terms add to each pair of a step.
  ETC_DEVICE void of_step(const TypeView& type, std::int64_t column, float (&term)[4]) const {
    ETC_UNROLL
    for (int e = 0; e < 4; ++e) term[e] = 0.0f;
    if (type.label.size == 0) return;  // labels of this type only mask
    ETC_UNROLL
    for (int j = 0; j < 2; ++j) {
      // The label of a column, or the position of the labels of its 16 queries.
      const std::uint32_t label = simt::load(type.label, column + key_of(j));
      ETC_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int query = query_of(2 * half);
        const int own = label < kFirstMixed
                            ? static_cast<int>(label)
                            : simt::load(type.mixed, static_cast<std::int64_t>(label - kFirstMixed) * kGroup + query);
        term[2 * half + j] = at(own, query);
      }
    }
  }

 private:
  ETC_DEVICE float at(int label, int query) const {
    return in_shared ? shared.load(label * kTableStride + query) : simt::load(table, base + label * kGroup + query);
  }
};

// Backward: one warp's sums of ds by label and query, dtable of its group. A query belongs to one lane, or in shared
// memory to two lanes that take every other key, so that no two threads add to the same number.
struct LabelSums {
  SharedTile<float> shared;  // [R, 32]
  Span<float> out;           // of query 0 of the group: label r of query i at base + i stride + r
  std::int64_t base = 0, stride = 0;
  int labels = 0;
  bool in_shared = false, mine = false;  // mine: this lane has a query

  // The destination of this warp's sums: dtable, or the item's slot.
  template <typename Params>
  static ETC_DEVICE LabelSums of(const Params& p, const QueryItem& item, std::int64_t head,
                                 const SharedTile<float>& shared) {
    LabelSums sums;
    const int warp = simt::warp_index();
    const int size = p.sizes.labels * simt::kWarp, lane = simt::lane_index();
    sums.labels = p.sizes.labels;
    sums.in_shared = p.sizes.shared_labels > 0;
    if (sums.in_shared) sums.shared = shared.part(warp * size, size);
    // Missing queries of a short group have no destination.
    sums.mine = kGroup * warp + lane % kGroup < item.queries && (sums.in_shared || lane < kGroup);
    if (item.slot < 0) {
      sums.out = p.dtable;
      sums.stride = p.sizes.labels;
      sums.base = (head * p.sizes.queries + item.query_row + kGroup * warp) * sums.stride;
    } else {
      sums.out = p.query_slots;
      sums.stride = p.sizes.head_size + p.sizes.labels;
      sums.base = ((static_cast<std::int64_t>(item.slot) * p.sizes.heads + head) * kBlockQueries + kGroup * warp) *
                      sums.stride +
                  p.sizes.head_size;
    }
    return sums;
  }

  // Whether pairs of this type add to the sums.
  ETC_DEVICE bool takes(const TypeView& type) const { return type.label.size > 0; }

  // Index of a label's sum of this lane's query, in global memory.
  ETC_DEVICE std::int64_t place(int label) const { return base + simt::lane_index() % kGroup * stride + label; }

  // Called before the first chunk, because dtable or the slot contains old numbers.
  ETC_DEVICE void clear() const {
    for (int r = 0; r < labels; ++r) {
      if (in_shared) {
        shared.store(r * simt::kWarp + simt::lane_index(), 0.0f);
      } else if (mine) {
        simt::store(out, place(r), 0.0f);
      }
    }
  }
  // Only one thread adds to a sum, so there are no atomics and the order is fixed.
  ETC_DEVICE void add(int label, float value) const {
    if (in_shared) {
      const int at = label * simt::kWarp + simt::lane_index();
      shared.store(at, shared.load(at) + value);
    } else if (mine) {
      simt::store(out, place(label), simt::load(out, place(label)) + value);
    }
  }
  // Adds a staged chunk's ds to the sums; adjacent keys with the same label are summed in a register first.
  ETC_DEVICE void add_chunk(const TypeView& type, const Chunk& chunk, const SharedTile<float>& stage) const {
    const int lane = simt::lane_index(), query = lane % kGroup;
    const int sharers = in_shared ? 2 : 1;  // lanes that share a query's keys
    if (lane / kGroup >= sharers) return;
    int current = -1;
    float sum = 0.0f;
    ETC_UNROLL
    for (int s = 0; s < kTileSteps; ++s) {
      if (s >= chunk.count) break;
      ETC_KEEP_LOOP
      for (int j = lane / kGroup; j < kRunStep; j += sharers) {
        const std::uint32_t label = simt::load(type.label, chunk.column[s] + j);
        const int own = label < kFirstMixed
                            ? static_cast<int>(label)
                            : simt::load(type.mixed, static_cast<std::int64_t>(label - kFirstMixed) * kGroup + query);
        // Labels are distances or memberships, so adjacent keys mostly have the same one.
        if (own != current) {
          if (current >= 0) add(current, sum);
          current = own;
          sum = 0.0f;
        }
        // ds of key j of step s and this lane's query
        sum += stage.load((kRunStep * s + j) * kTableStride + query);
      }
    }
    if (current >= 0) add(current, sum);
  }

  // Writes sums from shared memory to their destination; a sync must come before.
  ETC_DEVICE void flush() const {
    if (!in_shared || !mine) return;
    const int lane = simt::lane_index(), query = lane % kGroup;
    for (int r = lane / kGroup; r < labels; r += 2) {
      // The sums of both lanes, always added in this order.
      simt::store(out, place(r), shared.load(r * simt::kWarp + query) + shared.load(r * simt::kWarp + kGroup + query));
    }
  }
};

// Policy of a call without a table: nothing is copied, looked up or summed. Every policy has
//   load      loads what a warp needs of its group, before the first tile
//   of_step   the amount added to each of a step's scores (already times 1/sqrt(D)), the same in forward and backward
//   Sums      backward: the sums of ds that the terms need, per group; of, clear, takes, add_chunk, flush
//   kPairwise whether the kernels also call the functions of pairwise_terms.h
struct NoSums {
  template <typename Params>
  static ETC_DEVICE NoSums of(const Params&, const QueryItem&, std::int64_t, const SharedTile<float>&) {
    return {};
  }
  ETC_DEVICE bool takes(const TypeView&) const { return false; }
  ETC_DEVICE void clear() const {}
  ETC_DEVICE void add_chunk(const TypeView&, const Chunk&, const SharedTile<float>&) const {}
  ETC_DEVICE void flush() const {}
};
struct NoTerms {
  using Sums = NoSums;
  static constexpr bool kPairwise = false;
  template <typename Params>
  ETC_DEVICE void load(const Params&, const SharedTile<float>&, std::int64_t, std::int64_t) {}
  ETC_DEVICE void of_step(const TypeView&, std::int64_t, float (&term)[4]) const {
    ETC_UNROLL
    for (int e = 0; e < 4; ++e) term[e] = 0.0f;
  }
};

// Row of a label in the tables of a head.
ETC_DEVICE std::int64_t table_row(const AttentionSizes& sizes, std::int64_t label, std::int64_t head) {
  return label * sizes.table_heads + (sizes.table_heads == 1 ? 0 : head);
}

// Relative terms of one group and head: block x is a group, block y a head; a thread computes pairs of label and query.
// Always fp32: there are only R products per query, and their rounding error would affect every pair.
struct TableKernel : simt::BlockOf<128> {
  using Params = TableParams;
  static const char* name() { return "attention relative terms"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t group = simt::block_x(), head = simt::block_y();
    const std::int64_t groups = p.group_rows.size;
    const int head_size = p.sizes.head_size, queries = simt::load(p.group_sizes, group);
    const std::int64_t row = simt::load(p.group_rows, group);
    for (int i = simt::thread_index(); i < p.sizes.labels * kGroup; i += kThreads) {
      const int label = i / kGroup, query = i % kGroup;
      float sum = 0.0f;
      // Missing queries get 0: their entries are not used, but must be finite.
      if (query < queries) {
        const std::int64_t q = head * p.q.head_stride + (row + query) * p.q.row_stride;
        const std::int64_t own = table_row(p.sizes, label, head), r = own * head_size;
        for (int d = 0; p.rel.size > 0 && d < head_size; ++d)
          sum = simt::fma(number(p.q, q + d), simt::load(p.rel, r + d), sum);
        if (p.rel_bias.size > 0) sum += simt::load(p.rel_bias, own);
      }
      simt::store(p.table, (head * groups + group) * p.sizes.labels * kGroup + i, sum * p.sizes.scale);
    }
  }
};

// forward: table = (q·rel + rel_bias) / sqrt(D), and dtable has the 1/sqrt(D) already; so dq += dtable rel, and per
// kRelativeRows queries (block x; block y is a head) partial sums of dtable q and of dtable.
// No two blocks share a query or a partial sum.
struct RelativeKernel : simt::BlockOf<128> {
  using Params = RelativeParams;
  static const char* name() { return "attention backward, relative terms"; }
  static std::int64_t parts(std::int64_t rows) { return ceil_div(rows, kRelativeRows); }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t head = simt::block_y(), first = simt::block_x() * kRelativeRows;
    const int head_size = p.sizes.head_size, labels = p.sizes.labels;
    const std::int64_t left = p.sizes.queries - first;
    const int rows = left < kRelativeRows ? static_cast<int>(left) : kRelativeRows;
    // [rows, R] of this block's queries
    const std::int64_t dtable = (head * p.sizes.queries + first) * labels;
    const bool has_vectors = p.rel.size > 0;  // biases alone have no gradient for queries
    // Two components per thread: bf16 rows are written in words.
    const int pairs = ceil_div(head_size, 2);
    for (int i = simt::thread_index(); has_vectors && i < rows * pairs; i += kThreads) {
      const int row = i / pairs, d = i % pairs * 2, last = d + 1 < head_size ? 1 : 0;
      const RowPlace place = place_of(p.dq, first + row, head, head_size);
      float sum[2] = {component(place, d), last == 1 ? component(place, d + 1) : 0.0f};
      for (int r = 0; r < labels; ++r) {
        const float weight = simt::load(p.dtable, dtable + row * labels + r);
        const std::int64_t vector = table_row(p.sizes, r, head) * head_size + d;
        for (int e = 0; e <= last; ++e) sum[e] = simt::fma(weight, simt::load(p.rel, vector + e), sum[e]);
      }
      store_two(place, d, head_size, sum[0], sum[1]);
    }
    // One partial sum of the tables per kRelativeRows queries: a fixed number, so that the order of the sum is fixed.
    const std::int64_t partial = (simt::block_x() * p.sizes.heads + head) * labels * (head_size + 1);
    for (int i = simt::thread_index(); i < labels * (head_size + 1); i += kThreads) {
      const int r = i / (head_size + 1), d = i % (head_size + 1);
      float sum = 0.0f;
      for (int row = 0; row < rows; ++row) {
        // Column D is the bias: the sum of dtable itself.
        const float weight = simt::load(p.dtable, dtable + row * labels + r);
        const float q = d < head_size ? number(p.q, head * p.q.head_stride + (first + row) * p.q.row_stride + d) : 1.0f;
        sum = simt::fma(weight, q, sum);
      }
      simt::store(p.partial, partial + i, sum);
    }
  }
};

// One table's gradient += its partial sums, in order. A thread computes one element, block y is a head of the table.
// Heads that share the table are added one after the other. The only kernel that reads its output, because parameter
// gradients accumulate.
struct TableSumKernel : simt::BlockOf<128> {
  using Params = TableSumParams;
  static const char* name() { return "attention backward, sums of the tables"; }
  static std::int64_t blocks(const Params& p) { return ceil_div(p.rows * (p.folded ? 1 : p.columns), kThreads); }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t head = simt::block_y(), i = simt::block_x() * kThreads + simt::thread_index();
    const int elements = p.folded ? 1 : p.columns;  // of a row of the table
    if (i >= p.rows * elements) return;
    const std::int64_t r = i / elements, part = p.heads * p.rows * p.width;
    const std::int64_t sharers = p.table_heads == 1 ? p.heads : 1;
    float sum = 0.0f;
    for (std::int64_t h = head; h < head + sharers; ++h) {
      const std::int64_t first = (h * p.rows + r) * p.width + p.first + (p.folded ? 0 : i % elements);
      for (std::int64_t n = 0; n < p.parts; ++n) {
        for (int c = 0; c < (p.folded ? p.columns : 1); ++c) sum += simt::load(p.partial, first + n * part + c);
      }
    }
    const std::int64_t place = (r * p.table_heads + head) * elements + i % elements;
    simt::store(p.gradient, place, simt::load(p.gradient, place) + sum);
  }
};

}  // namespace etc::sparse::cuda
