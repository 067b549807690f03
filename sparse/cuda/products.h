// Matrix products of the attention kernels, in two precisions behind one interface. A warp multiplies one group of
// 16 queries with steps of 8 keys; in both precisions accumulators have the register layout of mma.m16n8k16:
//
//             keys (or components) 2(lane%4), +1
//   query lane/4        c[0] c[1]
//   query lane/4 + 8    c[2] c[3]
//
// so softmax, masks, scores and dropout are written once. Bf16Products are tensor-core tiles, fp32 accumulated;
// Fp32Products do the same sums with multiply-adds, for any head size.
//
// Every kind of products provides
//   copy_rows        starts an asynchronous copy of rows from global memory to a tile of shared memory
//   load_query       16 rows as the left operand of scores()
//   scores           c += query · 8 rows of a tile
//   weighted_sum     o += weights · rows of a tile, over the steps of a chunk
//   transposed_sum   o += weights of the block's queries, transposed, times the queries' rows
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/simt.h"
#include "etc_core/base/integers.h"
#include "sparse/cuda/attention_params.h"

namespace etc::sparse::cuda {

using simt::SharedArena;
using simt::SharedTile;

// A chunk: the steps that one warp's group sees within one key tile.
struct Chunk {
  int count = 0;
  int row[kTileSteps] = {};              // of the step's first key within the tile
  std::int64_t column[kTileSteps] = {};  // within the type
};

// Rows of one head of an operand that make a tile: row i begins at at + i·row_stride. Rows outside [first_valid, valid)
// do not exist and count as zeros.
template <typename Element>
struct HeadRows {
  Span<const Element> values;
  std::int64_t at = 0, row_stride = 0;
  int first_valid = 0, valid = 0;

  ETC_DEVICE bool has(int row) const { return row >= first_valid && row < valid; }
};

// Head `head` of an operand from first_row on, of which rows [first_valid, valid) exist.
template <typename Element>
ETC_DEVICE HeadRows<Element> rows_of_head(const Operand<Element>& from, std::int64_t head, std::int64_t first_row,
                                          int valid, int first_valid = 0) {
  return {from.values, head * from.head_stride + first_row * from.row_stride, from.row_stride, first_valid, valid};
}

// Threads (of a block or a warp) that copy a tile together; each copies every threads-th piece.
struct Team {
  int thread = 0, threads = 0;
};

// kSteps mma steps of depth 16: head sizes up to 16 kSteps, operands padded with zeros.
//
// mma.m16n8k16 multiplies 16 queries x 16 components with 16 components x 8 keys. Its operands are spread over a warp:
//   left   4 words a lane: rows lane/4 and lane/4 + 8, pairs of components 2(lane%4) and 2(lane%4) + 8
//   right  2 words a lane: key lane/4, the same pairs of components
// Rows in memory are pairs of bf16 already, so the left operand is read with plain loads. The right operand is loaded
// by ldmatrix, which gives each lane its words of an 8x8 matrix of 16-bit numbers. For p·v the keys must be the inner
// dimension of the values, so ldmatrix transposes while it loads.
template <int kSteps>
struct Bf16Products {
  using Element = std::uint32_t;  // in global memory: pairs, [N, rows, kWidth / 2]
  using Value = simt::Bf16;       // in shared memory
  using Tile = SharedTile<Value>;
  static constexpr int kWidth = 16 * kSteps;
  static constexpr int kTiles = 2 * kSteps;          // accumulators per group: 8 components each
  static constexpr int kStride = kWidth + 8;         // 16 bytes more: the 8 rows of a matrix lie in different banks
  static constexpr int kPairStride = kTileKeys + 8;  // of a tile of pairs; padded for the same reason
  static constexpr bool kStagedQueries = false;      // queries are kept in registers
  static constexpr bool kStagedWeights = false;      // probabilities become operands in registers

  // Rows lane/4 and lane/4 + 8 in the layout of mma's left operand: four words per 16 components.
  struct Query {
    std::uint32_t a[kSteps][4];
  };

  // Elements from row to row in shared memory.
  static constexpr int stride(int) { return kStride; }  // host and device
  // An element of a pair tile, rounded to nearest even.
  static ETC_DEVICE Value value(float x) { return simt::to_bf16(x); }

  // Starts copying rows [0, rows) into a tile.
  static ETC_DEVICE void copy_rows(const Tile& tile, const HeadRows<Element>& from, int rows, int, const Team& team) {
    // Rows are 16-byte aligned multiples of 16 bytes, so the widest copy is used.
    constexpr int kPieces = kWidth / 8;  // of 16 bytes
    for (int i = team.thread; i < rows * kPieces; i += team.threads) {
      const int row = i / kPieces, piece = i % kPieces;
      const std::int64_t at = from.at + row * from.row_stride + 4 * piece;
      simt::copy_async<16>(tile, row * kStride + 8 * piece, from.values, at, from.has(row));
    }
  }

  // Loads the rows of `from`. Staged kinds use rows [first, first + 16) of a tile filled by copy_rows instead.
  static ETC_DEVICE void load_query(Query& query, const Tile&, int, const HeadRows<Element>& from) {
    const int lane = simt::lane_index(), row = lane / 4;
    const std::int64_t base = from.at + row * from.row_stride + lane % 4;
    ETC_UNROLL
    for (int k = 0; k < kSteps; ++k) {
      ETC_UNROLL
      for (int part = 0; part < 4; ++part) {
        // Missing queries are zeros, so that their products are finite.
        const bool there = from.has(row + part % 2 * 8);
        const std::int64_t at = base + part % 2 * 8 * from.row_stride + 8 * k + part / 2 * 4;
        query.a[k][part] = there ? simt::load(from.values, at) : 0u;
      }
    }
  }

  // c += q · rows [row, row + 8) of the tile
  static ETC_DEVICE void scores(const Query& query, const Tile& tile, int row, int, float (&c)[4]) {
    const int lane = simt::lane_index();
    ETC_UNROLL
    for (int k = 0; k < kSteps; k += 2) {
      // Four matrices of 8 keys by 8 components; at the end of an odd kSteps the first two are loaded twice.
      const int piece = k + 1 < kSteps ? lane / 8 : lane / 8 % 2;
      std::uint32_t b[4];
      simt::load_matrix(tile, (row + lane % 8) * kStride + 16 * k + 8 * piece, b);
      // Sums are fp32, in which products of two bf16 numbers are exact.
      simt::mma(c, query.a[k], b[0], b[1]);
      if (k + 1 < kSteps) simt::mma(c, query.a[k + 1 < kSteps ? k + 1 : k], b[2], b[3]);
    }
  }

  // o += a · tile: a's first 8 columns are for rows [first, first + 8), the others for [second, second + 8)
  static ETC_DEVICE void accumulate(const std::uint32_t (&a)[4], const Tile& tile, int first, int second,
                                    float (&o)[kTiles][4]) {
    const int lane = simt::lane_index();
    // Each lane gives the address of one row of 8 components; the hardware transposes the matrices.
    const int row = (lane / 8 % 2 == 0 ? first : second) + lane % 8;
    ETC_UNROLL
    for (int t = 0; t < kTiles; t += 2) {
      std::uint32_t b[4];
      simt::load_matrix_transposed(tile, row * kStride + 8 * (t + lane / 16), b);
      // Two accumulators of 8 components per load.
      simt::mma(o[t], a, b[0], b[1]);
      simt::mma(o[t + 1], a, b[2], b[3]);
    }
  }

  // o += p · tile over the steps of a chunk
  static ETC_DEVICE void weighted_sum(const float (&p)[kTileSteps][4], const Chunk& chunk, const Tile& tile, int,
                                      const SharedTile<float>&, float (&o)[kTiles][4]) {
    ETC_UNROLL
    for (int s = 0; s < kTileSteps; s += 2) {
      // Chunks are filled from the front; the unrolled loop exits after the last step.
      if (s >= chunk.count) break;
      // A missing second step has weight zero and reads the first step's rows.
      const bool both = s + 1 < chunk.count;
      // Two accumulators of 8 keys form one left operand of 16 keys, without shuffles or memory accesses.
      const std::uint32_t a[4] = {simt::pack_bf16(p[s][0], p[s][1]), simt::pack_bf16(p[s][2], p[s][3]),
                                  both ? simt::pack_bf16(p[s + 1][0], p[s + 1][1]) : 0u,
                                  both ? simt::pack_bf16(p[s + 1][2], p[s + 1][3]) : 0u};
      accumulate(a, tile, chunk.row[s], both ? chunk.row[s + 1] : chunk.row[s], o);
    }
  }

  // o += columns [first_key, first_key + 16) of w, transposed, times the block's queries.  w [kBlockQueries, w_stride]
  static ETC_DEVICE void transposed_sum(const Tile& w, int w_stride, int first_key, const Tile& queries, int,
                                        float (&o)[kTiles][4]) {
    const int lane = simt::lane_index();
    ETC_UNROLL
    for (int k = 0; k < kBlockQueries; k += 16) {
      std::uint32_t a[4];
      simt::load_matrix_transposed(w, (k + lane / 16 * 8 + lane % 8) * w_stride + first_key + lane / 8 % 2 * 8, a);
      accumulate(a, queries, k, k + 8, o);
    }
  }
};

// Rows [first, first + 16) of a tile as the left operand: a reference to them, not a copy.
template <typename Tile>
struct StagedQuery {
  Tile rows;
  int first = 0;
};

// The same with queries in shared memory, because two operands of wide queries and their gradient do not fit into a
// thread's registers.
template <int kSteps>
struct StagedBf16Products : Bf16Products<kSteps> {
  using Base = Bf16Products<kSteps>;
  using typename Base::Element;
  using typename Base::Tile;
  static constexpr bool kStagedQueries = true;

  using Query = StagedQuery<Tile>;

  static ETC_DEVICE void load_query(Query& query, const Tile& tile, int first, const HeadRows<Element>&) {
    query = {tile, first};
  }

  static ETC_DEVICE void scores(const Query& query, const Tile& tile, int row, int, float (&c)[4]) {
    const int lane = simt::lane_index();
    ETC_UNROLL
    for (int k = 0; k < kSteps; ++k) {
      std::uint32_t a[4], b[4];
      simt::load_matrix(query.rows, (query.first + lane % 16) * Base::kStride + 16 * k + lane / 16 * 8, a);
      // Two matrices of 8 keys by 8 components, each loaded twice.
      simt::load_matrix(tile, (row + lane % 8) * Base::kStride + 16 * k + lane / 8 % 2 * 8, b);
      simt::mma(c, a, b[0], b[1]);
    }
  }
};

// Head sizes up to 8 kMaxTiles. Tensor cores are not used: they would round fp32 operands to 10 bits. Multiply-adds run
// in the order of the components, and lanes own the same accumulators as in bf16.
template <int kMaxTiles>
struct Fp32Products {
  using Element = float;
  using Value = float;
  using Tile = SharedTile<Value>;
  static constexpr int kTiles = kMaxTiles;
  static constexpr int kPairStride = kTileKeys + 1;
  static constexpr bool kStagedQueries = true;  // queries and probabilities are staged in shared memory
  static constexpr bool kStagedWeights = true;

  using Query = StagedQuery<Tile>;

  // Host and device. Odd strides put rows into different banks.
  static constexpr int tiles(int head_size) { return ceil_div(head_size, 8); }
  static constexpr int width(int head_size) { return 8 * tiles(head_size); }
  static constexpr int stride(int head_size) { return width(head_size) + 1; }
  static ETC_DEVICE Value value(float x) { return x; }

  static ETC_DEVICE void copy_rows(const Tile& tile, const HeadRows<Element>& from, int rows, int head_size,
                                   const Team& team) {
    // 4 bytes at a time: for any D, rows are only 4-byte aligned.
    const int wide = width(head_size), row_stride = stride(head_size);
    for (int i = team.thread; i < rows * wide; i += team.threads) {
      const int row = i / wide, d = i % wide;
      const std::int64_t at = from.at + row * from.row_stride + d;
      simt::copy_async<4>(tile, row * row_stride + d, from.values, at, from.has(row) && d < head_size);
    }
  }

  static ETC_DEVICE void load_query(Query& query, const Tile& tile, int first, const HeadRows<Element>&) {
    query = {tile, first};
  }

  static ETC_DEVICE void scores(const Query& query, const Tile& tile, int row, int head_size, float (&c)[4]) {
    const int lane = simt::lane_index(), row_stride = stride(head_size);
    // The lane's two queries and two keys give four sums, as in an mma accumulator.
    const int q = (query.first + lane / 4) * row_stride, k = (row + lane % 4 * 2) * row_stride;
    for (int d = 0; d < head_size; ++d) {
      const float q0 = query.rows.load(q + d), q1 = query.rows.load(q + 8 * row_stride + d);
      const float k0 = tile.load(k + d), k1 = tile.load(k + row_stride + d);
      c[0] = simt::fma(q0, k0, c[0]);
      c[1] = simt::fma(q0, k1, c[1]);
      c[2] = simt::fma(q1, k0, c[2]);
      c[3] = simt::fma(q1, k1, c[3]);
    }
  }

  // o[.] += (w0, w1) x tile[row]: the contribution of one row
  static ETC_DEVICE void add_row(float w0, float w1, const Tile& tile, int row, int head_size, float (&o)[kTiles][4]) {
    // Tiles beyond the head are skipped; array sizes are template constants, so that the arrays stay in registers.
    const int used = tiles(head_size), at = row * stride(head_size) + simt::lane_index() % 4 * 2;
    ETC_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      if (t >= used) break;
      const float v0 = tile.load(at + 8 * t), v1 = tile.load(at + 8 * t + 1);
      o[t][0] = simt::fma(w0, v0, o[t][0]);
      o[t][1] = simt::fma(w0, v1, o[t][1]);
      o[t][2] = simt::fma(w1, v0, o[t][2]);
      o[t][3] = simt::fma(w1, v1, o[t][3]);
    }
  }

  static ETC_DEVICE void weighted_sum(const float (&)[kTileSteps][4], const Chunk& chunk, const Tile& tile,
                                      int head_size, const SharedTile<float>& stage, float (&o)[kTiles][4]) {
    // Weights are read from the stage, because a lane needs weights that other lanes computed.
    const int query = simt::lane_index() / 4;
    ETC_UNROLL
    // Step by step, key by key: o += w[key] · row, in the order of the keys.
    for (int s = 0; s < kTileSteps; ++s) {
      if (s >= chunk.count) break;
      ETC_KEEP_LOOP
      for (int j = 0; j < kRunStep; ++j) {
        const int at = (kRunStep * s + j) * kTableStride + query;
        add_row(stage.load(at), stage.load(at + 8), tile, chunk.row[s] + j, head_size, o);
      }
    }
  }

  static ETC_DEVICE void transposed_sum(const Tile& w, int w_stride, int first_key, const Tile& queries, int head_size,
                                        float (&o)[kTiles][4]) {
    // The accumulators' rows are the lane's two keys instead of queries.
    const int key = first_key + simt::lane_index() / 4;
    // For each query in order: its two weights for this lane's keys.
    for (int i = 0; i < kBlockQueries; ++i) {
      add_row(w.load(i * w_stride + key), w.load(i * w_stride + key + 8), queries, i, head_size, o);
    }
  }
};

// Zeroes the accumulators of a warp: 16 rows by 8 kTiles columns.
template <int kTiles>
ETC_DEVICE void clear(float (&sums)[kTiles][4]) {
  ETC_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    ETC_UNROLL
    for (int e = 0; e < 4; ++e) sums[t][e] = 0.0f;
  }
}

// Position of component 0 of one row of a head; the others follow it. In bf16, rows begin at whole words.
struct RowPlace {
  Span<float> values;         // fp32; empty if `pairs` is used
  Span<std::uint32_t> pairs;  // two bf16 numbers per word
  std::int64_t at = 0;        // in numbers
};

// Position of row `row` of head `head` in the caller's tensor, and a position in scratch.
ETC_DEVICE RowPlace place_of(const Output& to, std::int64_t row, std::int64_t head, int head_size) {
  return {to.values, to.pairs, row * to.row_stride + head * head_size};
}
ETC_DEVICE RowPlace scratch_place(const Span<float>& slots, std::int64_t at) {
  return {slots, {}, at};
}

// Number i of the rows, in either type.
ETC_DEVICE float number(const NumberRows& rows, std::int64_t i) {
  if (rows.pairs.size == 0) return simt::load(rows.values, i);
  const std::uint32_t pair = simt::load(rows.pairs, i / 2);
  return i % 2 == 0 ? simt::low_bf16(pair) : simt::high_bf16(pair);
}

// Reads component d of a row that was written.
ETC_DEVICE float component(const RowPlace& of, int d) {
  if (of.pairs.size == 0) return simt::load(of.values, of.at + d);
  const std::uint32_t pair = simt::load(of.pairs, (of.at + d) / 2);
  return (of.at + d) % 2 == 0 ? simt::low_bf16(pair) : simt::high_bf16(pair);
}

// Stores components d and d + 1 of a row; d is even. If D is odd, the last pair's second component is beyond D.
ETC_DEVICE void store_two(const RowPlace& to, int d, int head_size, float first, float second) {
  if (to.pairs.size > 0) return simt::store(to.pairs, (to.at + d) / 2, simt::pack_bf16(first, second));
  simt::store(to.values, to.at + d, first);
  if (d + 1 < head_size) simt::store(to.values, to.at + d + 1, second);
}

// to = factor · row lane/4 + 8 half of the accumulators, written by its four lanes. Columns beyond D are skipped.
template <int kTiles>
ETC_DEVICE void store_row(const RowPlace& to, const float (&sums)[kTiles][4], int half, int head_size,
                          float factor = 1.0f) {
  ETC_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    const int d = 8 * t + simt::lane_index() % 4 * 2;
    if (d < head_size) store_two(to, d, head_size, sums[t][2 * half] * factor, sums[t][2 * half + 1] * factor);
  }
}

// Writes the accumulators of step s into a warp's stage: [kTileKeys, kTableStride], queries contiguous.
// Each lane writes its own pairs; a sync is required before other lanes read them.
ETC_DEVICE void stage_step(const SharedTile<float>& stage, const float (&p)[4], int s) {
  const int lane = simt::lane_index();
  ETC_UNROLL
  for (int e = 0; e < 4; ++e) {
    stage.store((kRunStep * s + lane % 4 * 2 + e % 2) * kTableStride + lane / 4 + e / 2 * 8, p[e]);
  }
}

// The same with the steps of a chunk.
ETC_DEVICE void stage_chunk(const SharedTile<float>& stage, const float (&p)[kTileSteps][4], const Chunk& chunk) {
  ETC_UNROLL
  for (int s = 0; s < kTileSteps; ++s) {
    if (s >= chunk.count) break;
    stage_step(stage, p[s], s);
  }
}

}  // namespace etc::sparse::cuda
