// Building blocks of the kernels of linear attention: products of 64 rows at a time by a whole block, and the features
// of these rows. Intermediate results are stored in the task's workspace in global memory; products are fp32.
//
//   rows [64, D] · turned projection [D, m]  ->  u  ->  exp  ->  f [64, m]
//   sums S [m, D] and z [m] count as one matrix of D + 1 columns, values and output gradients as rows of D + 1 numbers:
//     f·(S, z) = numerators and denominator        sum_j f(k_j)T (v_j, 1) = (S, z)
#pragma once

#include <cstdint>

#include "etc_core/base/integers.h"
#include "sparse/cuda/pair_terms.h"
#include "sparse/cuda/performer_params.h"

namespace etc::sparse::cuda {

inline constexpr float kPerformerStabiliser = 1e-6f;  // added to the exponentials

// Consecutive rows of one head, kPerformerRows at most.
struct RowBlock {
  std::int64_t head = 0, first = 0;
  int count = 0;
};

// Reads component d of row i of a block.
ETC_DEVICE float row_element(const Operand<float>& from, const RowBlock& block, int i, int d) {
  return simt::load(from.values, block.head * from.head_stride + (block.first + i) * from.row_stride + d);
}

ETC_DEVICE std::int64_t output_place(const Output& to, const RowBlock& block, int head_size, int i, int d) {
  return (block.first + i) * to.row_stride + block.head * head_size + d;
}

// One sum: element (r, c) of S, or of z where c is D.
struct SumPlace {
  Span<float> values;
  std::int64_t at = 0, stride = 0, ones = 0;
  int head_size = 0;

  ETC_DEVICE std::int64_t place(int r, int c) const { return c < head_size ? at + r * stride + c : at + ones + r; }
  ETC_DEVICE float load(int r, int c) const { return simt::load(values, place(r, c)); }
  ETC_DEVICE void store(int r, int c, float x) const { simt::store(values, place(r, c), x); }
};

ETC_DEVICE SumPlace sum_at(const PerformerSizesView& sizes, const Span<float>& values, std::int64_t at) {
  return {values, at, sizes.stride, sizes.sum_ones, sizes.head_size};
}

// A row-major matrix in a task's workspace.
struct Matrix {
  Span<float> values;
  std::int64_t at = 0;
  int columns = 0;

  ETC_DEVICE float load(int i, int j) const { return simt::load(values, at + std::int64_t{i} * columns + j); }
  ETC_DEVICE void store(int i, int j, float x) const { simt::store(values, at + std::int64_t{i} * columns + j, x); }
};

// The workspace of one task. Host and device compute its layout with the same code.
struct PerformerWorkspace {
  Matrix queries, keys;       // features [64, m]
  Matrix rows;                // [64, D + 1]: numerators with denominators; backward (dn, de)
  Matrix slopes;              // backward: df, then g [64, m]
  Matrix pairs, pair_slopes;  // causal [64, 64]
  std::int64_t sum = 0;       // causal: running sums
  std::int64_t floats = 0;

  static constexpr PerformerWorkspace take(const PerformerSizesView& sizes, const Span<float>& values,
                                           std::int64_t at) {
    PerformerWorkspace own;
    std::int64_t next = at;
    own.queries = deal(values, sizes.features, next);
    own.keys = deal(values, sizes.features, next);
    own.rows = deal(values, sizes.head_size + 1, next);
    own.slopes = deal(values, sizes.features, next);
    own.pairs = deal(values, sizes.causal ? kPerformerRows : 0, next);
    own.pair_slopes = deal(values, sizes.causal ? kPerformerRows : 0, next);
    own.sum = next;
    own.floats = next - at + (sizes.causal ? sizes.sum_floats : 0);
    return own;
  }

 private:
  static constexpr Matrix deal(const Span<float>& values, int columns, std::int64_t& next) {
    const Matrix matrix{values, next, columns};
    next += std::int64_t{kPerformerRows} * columns;
    return matrix;
  }
};

ETC_DEVICE PerformerWorkspace workspace_of_block(const PerformerParams& p) {
  return PerformerWorkspace::take(p.sizes, p.workspaces, simt::block_x() * p.sizes.workspace_floats);
}

// Per-row numbers of the block's current rows, in shared memory: 1,024 bytes.
struct RowNumbers {
  SharedTile<float> half, largest, sums;  // [64] |x'|^2 / 2, largest u, sum of g
  SharedTile<std::int32_t> best;          // [64] the feature with the largest u

  static constexpr std::int64_t kBytes = 4 * kPerformerRows * 4;
  template <typename Arena>
  static ETC_DEVICE RowNumbers take(Arena& arena) {
    return {arena.template take<float>(kPerformerRows), arena.template take<float>(kPerformerRows),
            arena.template take<float>(kPerformerRows), arena.template take<std::int32_t>(kPerformerRows)};
  }
};

struct ProductSize {
  int rows, columns, steps;
};

// store(i, j, sum_k a(i, k) b(k, j)) for all i and j, by the whole block; sums are in the order of k. A thread computes
// tiles of 4 x 4, whose columns are strided so that adjacent threads read adjacent elements of b. A sync is required
// before the results are read.
template <typename A, typename B, typename Store>
ETC_DEVICE void block_product(const ProductSize& size, const A& a, const B& b, const Store& store) {
  constexpr int kTile = 4;
  const int across = ceil_div(size.columns, kTile), down = ceil_div(size.rows, kTile);
  ETC_KEEP_LOOP
  for (int t = simt::thread_index(); t < across * down; t += kPerformerThreads) {
    const int first = t / across * kTile, column = t % across;
    float sum[kTile][kTile] = {};
    ETC_KEEP_LOOP
    for (int k = 0; k < size.steps; ++k) {
      float x[kTile], y[kTile];
      ETC_UNROLL
      for (int e = 0; e < kTile; ++e) {
        // Beyond the end the last row is read again; its results are never stored.
        x[e] = a(first + e < size.rows ? first + e : size.rows - 1, k);
        y[e] = b(k, column + e * across < size.columns ? column + e * across : size.columns - 1);
      }
      ETC_UNROLL
      for (int i = 0; i < kTile; ++i) {
        ETC_UNROLL
        for (int j = 0; j < kTile; ++j) sum[i][j] = simt::fma(x[i], y[j], sum[i][j]);
      }
    }
    ETC_UNROLL
    for (int i = 0; i < kTile; ++i) {
      ETC_UNROLL
      for (int j = 0; j < kTile; ++j) {
        if (first + i < size.rows && column + j * across < size.columns) {
          store(first + i, column + j * across, sum[i][j]);
        }
      }
    }
  }
}

// The sum of value(d) for d below `count`, for this thread's row: four lanes per row, each sums every fourth number.
template <typename Value>
ETC_DEVICE float sum_of_row(int count, const Value& value) {
  float sum = 0.0f;
  for (int d = simt::thread_index() % 4; d < count; d += 4) sum = simt::add(sum, value(d));
  sum = simt::add(sum, simt::shuffle_xor(sum, 1));
  return simt::add(sum, simt::shuffle_xor(sum, 2));
}

ETC_DEVICE int row_of_thread() {
  return simt::thread_index() / 4;
}
ETC_DEVICE bool first_of_row() {
  return simt::thread_index() % 4 == 0;
}

// Computes u [count, m] and h of a block's rows.
ETC_DEVICE void project_rows(const PerformerParams& p, const Operand<float>& from, const RowBlock& block,
                             const Matrix& u, const RowNumbers& numbers) {
  const PerformerSizesView& sizes = p.sizes;
  block_product(
      {block.count, sizes.features, sizes.head_size}, [&](int i, int d) { return row_element(from, block, i, d); },
      [&](int d, int r) { return simt::load(p.turned, std::int64_t{d} * sizes.features + r); },
      [&](int i, int r, float x) { u.store(i, r, x); });
  const int i = row_of_thread();
  const bool has = i < block.count;
  const float squares = sum_of_row(has ? sizes.head_size : 0, [&](int d) {
    const float x = row_element(from, block, i, d);
    return x * x;
  });
  if (first_of_row()) numbers.half.store(i, 0.5f * sizes.row_scale * squares);
  simt::sync_block();
}

// Replaces u by f = exp(u - h - maximum(i)) + 1e-6.
template <typename Maximum>
ETC_DEVICE void exponentials(const PerformerParams& p, int count, const Matrix& u, const RowNumbers& numbers,
                             const Maximum& maximum) {
  const float extra = p.sizes.stabilised ? kPerformerStabiliser : 0.0f;
  for (int n = simt::thread_index(); n < count * p.sizes.features; n += kPerformerThreads) {
    const int i = n / p.sizes.features, r = n % p.sizes.features;
    const float shift = numbers.half.load(i) + maximum(i);
    u.store(i, r, simt::exp2((u.load(i, r) - shift) * kLog2E) + extra);
  }
  simt::sync_block();
}

// Features of queries, each with its own maximum. If several features have the maximum, the first one counts.
ETC_DEVICE void query_features(const PerformerParams& p, const RowBlock& block, const Matrix& f,
                               const RowNumbers& numbers) {
  project_rows(p, p.q, block, f, numbers);
  const int i = row_of_thread();
  float largest = -simt::infinity();
  int best = 0;
  for (int r = simt::thread_index() % 4; i < block.count && r < p.sizes.features; r += 4) {
    const float u = f.load(i, r);
    if (u > largest) {
      largest = u;
      best = r;
    }
  }
  ETC_UNROLL
  for (int mask = 1; mask <= 2; mask *= 2) {
    const float other = simt::shuffle_xor(largest, mask);
    const int place = simt::shuffle_xor(best, mask);
    if (other > largest || (other == largest && place < best)) {
      largest = other;
      best = place;
    }
  }
  if (first_of_row()) {
    numbers.largest.store(i, p.sizes.stabilised ? largest : 0.0f);
    numbers.best.store(i, best);
  }
  simt::sync_block();
  exponentials(p, block.count, f, numbers, [&](int row) { return numbers.largest.load(row); });
}

// Features of keys from their u, with the maximum of their example.
ETC_DEVICE void key_features(const PerformerParams& p, const RowBlock& block, float maximum, const Matrix& f,
                             const RowNumbers& numbers) {
  exponentials(p, block.count, f, numbers, [&](int) { return maximum; });
}

// Reads component c of (v_j, 1).
ETC_DEVICE float value_element(const PerformerParams& p, const RowBlock& block, int j, int c) {
  return c < p.sizes.head_size ? row_element(p.v, block, j, c) : 1.0f;
}

// sum += fT x over a block's rows.   f [count, m], x(i, c) for c up to D
template <typename X>
ETC_DEVICE void add_to_sum(const PerformerParams& p, int count, const Matrix& f, const X& x, const SumPlace& sum) {
  block_product(
      {p.sizes.features, p.sizes.head_size + 1, count}, [&](int r, int i) { return f.load(i, r); },
      [&](int i, int c) { return x(i, c); }, [&](int r, int c, float own) { sum.store(r, c, sum.load(r, c) + own); });
  simt::sync_block();
}

// pairs[i][j] = f(q_i)·f(k_j) for j <= i, else 0, for the rows of one block.
ETC_DEVICE void causal_pairs(const PerformerParams& p, int count, const PerformerWorkspace& own) {
  block_product(
      {count, count, p.sizes.features}, [&](int i, int r) { return own.queries.load(i, r); },
      [&](int r, int j) { return own.keys.load(j, r); },
      [&](int i, int j, float x) { own.pairs.store(i, j, j <= i ? x : 0.0f); });
  simt::sync_block();
}

// Calls body(block) for the blocks of a task, in order or in reverse order.
template <typename Body>
ETC_DEVICE void for_each_row_block(const PerformerTask& task, bool backwards, const Body& body) {
  const int blocks = ceil_div(task.rows, kPerformerRows);
  for (int n = 0; n < blocks; ++n) {
    const int first = (backwards ? blocks - 1 - n : n) * kPerformerRows;
    const int left = task.rows - first;
    body(RowBlock{task.head, task.first_row + first, left < kPerformerRows ? left : kPerformerRows});
  }
}

// Copies one sum, by the whole block.
ETC_DEVICE void copy_sum(const PerformerParams& p, const SumPlace& from, const SumPlace& to) {
  const int width = p.sizes.head_size + 1;
  for (int n = simt::thread_index(); n < p.sizes.features * width; n += kPerformerThreads) {
    to.store(n / width, n % width, from.load(n / width, n % width));
  }
  simt::sync_block();
}

ETC_DEVICE void clear_sum(const PerformerParams& p, const SumPlace& sum) {
  const int width = p.sizes.head_size + 1;
  for (int n = simt::thread_index(); n < p.sizes.features * width; n += kPerformerThreads) {
    sum.store(n / width, n % width, 0.0f);
  }
  simt::sync_block();
}

// The largest u of one chunk of keys, and the first row and feature that have it.
struct LargestFeature {
  float value = -simt::infinity();
  std::int64_t row = 0;
  int feature = 0;

  ETC_DEVICE void take(float other, std::int64_t other_row, int other_feature) {
    const bool earlier = other_row < row || (other_row == row && other_feature < feature);
    if (other < value || (other == value && !earlier)) return;
    value = other;
    row = other_row;
    feature = other_feature;
  }
};

// Shared memory for the reduction over a block's threads: 3,072 bytes.
struct LargestTiles {
  SharedTile<float> value;                // [kPerformerThreads]
  SharedTile<std::int32_t> row, feature;  // row: within the chunk

  static constexpr std::int64_t kBytes = 3 * kPerformerThreads * 4;
  template <typename Arena>
  static ETC_DEVICE LargestTiles take(Arena& arena) {
    return {arena.template take<float>(kPerformerThreads), arena.template take<std::int32_t>(kPerformerThreads),
            arena.template take<std::int32_t>(kPerformerThreads)};
  }
};

// Updates `own` with this thread's share of a block's u.
ETC_DEVICE void note_largest(const PerformerParams& p, const RowBlock& block, const Matrix& u, LargestFeature& own) {
  for (int n = simt::thread_index(); n < block.count * p.sizes.features; n += kPerformerThreads) {
    const int i = n / p.sizes.features, r = n % p.sizes.features;
    own.take(u.load(i, r), block.first + i, r);
  }
}

// Reduces over the whole block; the first thread stores the result for the key task.
ETC_DEVICE void store_largest(const PerformerParams& p, const PerformerTask& task, const LargestFeature& own,
                              const LargestTiles& tiles) {
  const int thread = simt::thread_index();
  tiles.value.store(thread, own.value);
  tiles.row.store(thread, static_cast<std::int32_t>(own.row - task.first_row));
  tiles.feature.store(thread, own.feature);
  simt::sync_block();
  if (thread != 0) return;
  LargestFeature all = own;
  for (int n = 1; n < kPerformerThreads; ++n) {
    all.take(tiles.value.load(n), task.first_row + tiles.row.load(n), tiles.feature.load(n));
  }
  simt::store(p.largest, simt::block_x(), all.value);
  if (p.largest_row.size == 0) return;  // forward
  simt::store(p.largest_row, simt::block_x(), all.row);
  simt::store(p.largest_feature, simt::block_x(), static_cast<std::int32_t>(all.feature));
}

}  // namespace etc::sparse::cuda
