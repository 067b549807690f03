// Weight gradients in fp32: dw += aᵀ·b.
//
// Not by the library: it packs aᵀ anew for every product, and takes long for rows whose distance is a multiple of 4 KB,
// as in base and large models; with AVX2 it also sums in an order that depends on the product's sizes. Here a tile packs
// 512 tokens of its columns once, and a number of dw is the sum of its tokens in order, whatever tile it lies in:
//
//     b: panels of kCols columns            [wide / kCols][tokens][kCols]
//     a: strips of kRows columns            [strip][tokens][kRows], as many as stay in the second-level cache
//     kRows x kCols of dw in registers  +=  strip · panel
//
// GFLOP/s of one core (AMD EPYC, Zen 4), dw [3072, 768] and [768, 768]: AVX-512 98 and 97, the library 95 and 97; AVX2 94
// and 93, the library 38 and 68.
#include "etc_core/ops/cpu/weight_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/weight_gradient_cpu.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/scratch.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#ifndef ETC_CORE_OPS_CPU_WEIGHT_GRADIENT_TILE_
#define ETC_CORE_OPS_CPU_WEIGHT_GRADIENT_TILE_
namespace etc::ops::cpu {

// Columns of a that are packed at a time: 390 KB of 512 tokens.
inline constexpr std::int64_t kPackedRows = 192;
// Multiples of what any instruction set has in registers.
inline constexpr std::int64_t kRowUnit = 24, kColUnit = 48;

// A part of dw [high, wide] and one block of tokens.
struct PackedTile {
  std::int64_t high, wide, tokens;
  const float* a;  // [tokens, high], rows a_stride apart
  std::int64_t a_stride;
  const float* b;  // [tokens, wide]
  std::int64_t b_stride;
  float* dw;  // [high, wide]
  std::int64_t dw_stride;
  float* packed_a;  // room for [tokens, kPackedRows]
  float* packed_b;  // room for [tokens, wide rounded up to kColUnit]
};

}  // namespace etc::ops::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;
constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

// 24 sums, 3 vectors of b and one number of a in the 32 registers of AVX-512; 12, 2 and 1 in the 16 of older sets. Loads
// are then fewer than half of the multiplications.
constexpr int kRows = kLanes == 16 ? 8 : 6;
constexpr int kVectors = kLanes == 16 ? 3 : 2;
constexpr std::int64_t kCols = kVectors * kLanes;
static_assert(kRowUnit % kRows == 0 && kColUnit % kCols == 0 && kPackedRows % kRowUnit == 0);

// to [kWidth] = from [count], zeros behind.
template <std::int64_t kWidth>
HWY_INLINE void copy_columns(const float* from, std::int64_t count, float* to) {
  if (count < kWidth) {
    std::fill(std::copy_n(from, std::max<std::int64_t>(0, count), to), to + kWidth, 0.0f);
  } else if constexpr (kWidth % kLanes == 0) {
    const FloatTag d;
    HWY_UNROLL(3)
    for (std::int64_t i = 0; i < kWidth; i += kLanes) hn::Store(hn::LoadU(d, from + i), d, to + i);
  } else {
    std::memcpy(to, from, kWidth * sizeof(float));
  }
}

// to [columns / kWidth][tokens][kWidth] = from [tokens, columns], zeros behind the last column. Goes down the rows by
// kColUnit columns, whole cache lines; no hardware prefetcher follows rows so far apart.
template <std::int64_t kWidth>
HWY_INLINE void pack_columns(const float* from, std::int64_t stride, std::int64_t tokens, std::int64_t columns,
                             float* to) {
  constexpr std::int64_t kRowsAhead = 32, kLine = 16;
  for (std::int64_t first = 0; first < columns; first += kColUnit) {
    const std::int64_t end = std::min(columns, first + kColUnit);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float* const row = from + t * stride;
      if (t + kRowsAhead < tokens) {
        for (std::int64_t col = first; col < end; col += kLine) hwy::Prefetch(row + kRowsAhead * stride + col);
      }
      for (std::int64_t col = first; col < end; col += kWidth) {
        copy_columns<kWidth>(row + col, columns - col, to + col * tokens + t * kWidth);
      }
    }
  }
}

// sum [kRows][kVectors] = sum over the tokens of a[t][row] * b[t][col], one after the other.   a [tokens, kRows],
// b [tokens, kCols]
HWY_INLINE void sum_of_products(const float* a, const float* b, std::int64_t tokens, FloatVec (&sum)[kRows][kVectors]) {
  const FloatTag d;
  HWY_UNROLL(8)
  for (auto& row : sum) {
    HWY_UNROLL(3)
    for (FloatVec& s : row) s = hn::Zero(d);
  }
  for (std::int64_t t = 0; t < tokens; ++t, a += kRows, b += kCols) {
    FloatVec right[kVectors];
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) right[v] = hn::Load(d, b + v * kLanes);
    HWY_UNROLL(8)
    for (int row = 0; row < kRows; ++row) {
      const FloatVec left = hn::Set(d, a[row]);
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) sum[row][v] = hn::MulAdd(left, right[v], sum[row][v]);
    }
  }
}

// Fetches what add_sums will add to.
HWY_INLINE void ask_ahead(float* dw, std::int64_t stride) {
  HWY_UNROLL(8)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) hwy::Prefetch(dw + row * stride + v * kLanes);
  }
}

// dw [high, wide] += sum; high <= kRows, wide <= kCols.
HWY_INLINE void add_sums(const FloatVec (&sum)[kRows][kVectors], std::int64_t high, std::int64_t wide, float* dw,
                         std::int64_t stride) {
  const FloatTag d;
  if (high == kRows && wide == kCols) {
    HWY_UNROLL(8)
    for (int row = 0; row < kRows; ++row) {
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        float* const place = dw + row * stride + v * kLanes;  // [kLanes]
        hn::StoreU(hn::Add(hn::LoadU(d, place), sum[row][v]), d, place);
      }
    }
    return;
  }
  HWY_ALIGN float sums[kRows * kCols];
  for (int row = 0; row < kRows; ++row) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[row][v], d, sums + row * kCols + v * kLanes);
  }
  for (std::int64_t row = 0; row < high; ++row) {
    for (std::int64_t col = 0; col < wide; ++col) dw[row * stride + col] += sums[row * kCols + col];
  }
}

void add_tile(const PackedTile& tile) {
  pack_columns<kCols>(tile.b, tile.b_stride, tile.tokens, tile.wide, tile.packed_b);
  for (std::int64_t first = 0; first < tile.high; first += kPackedRows) {
    const std::int64_t high = std::min(kPackedRows, tile.high - first);
    pack_columns<kRows>(tile.a + first, tile.a_stride, tile.tokens, high, tile.packed_a);
    // A panel of b is the operand that all strips share while it is near.
    for (std::int64_t col = 0; col < tile.wide; col += kCols) {
      for (std::int64_t row = 0; row < high; row += kRows) {
        float* const dw = tile.dw + (first + row) * tile.dw_stride + col;
        ask_ahead(dw, tile.dw_stride);
        FloatVec sum[kRows][kVectors];
        sum_of_products(tile.packed_a + row * tile.tokens, tile.packed_b + col * tile.tokens, tile.tokens, sum);
        add_sums(sum, std::min<std::int64_t>(kRows, high - row), std::min(kCols, tile.wide - col), dw, tile.dw_stride);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {
HWY_EXPORT(add_tile);

// Of dw; all give the same bits. Largest first: the larger, the less is packed for each multiplication.
struct TileSize {
  std::int64_t high, wide;
};
constexpr TileSize kTileSizes[] = {{768, 768}, {384, 768}, {384, 384}, {192, 384}, {192, 192}, {96, 96}};

// The largest of which every thread gets two, to even out their ends.
TileSize tile_size(std::int64_t p, std::int64_t q) {
  const std::int64_t threads = thread_count(), tasks = threads == 1 ? 1 : 2 * threads;
  const auto enough = [&](TileSize tile) { return ceil_div(p, tile.high) * ceil_div(q, tile.wide) >= tasks; };
  const auto found = std::find_if(std::begin(kTileSizes), std::end(kTileSizes), enough);
  return found != std::end(kTileSizes) ? *found : *std::prev(found);
}

// Where one thread packs tokens of a tile.
struct PackedFloats {
  std::int64_t a, b;
  std::int64_t both() const { return a + b; }
};
PackedFloats packed_floats(std::int64_t rows, std::int64_t p, std::int64_t q) {
  const TileSize size = tile_size(p, q);
  const std::int64_t tokens = round_up(std::min(kTokenBlock, rows), 16);  // whole cache lines
  return {tokens * std::min(kPackedRows, round_up(std::min(size.high, p), kRowUnit)),
          tokens * round_up(std::min(size.wide, q), kColUnit)};
}

// The part of dw from row i and column j on.
void add_part(const WeightGradient& g, std::int64_t i, std::int64_t j, float* packed_a, float* packed_b) {
  const TileSize size = tile_size(g.p, g.q);
  const std::int64_t high = std::min(size.high, g.p - i), wide = std::min(size.wide, g.q - j);
  for (std::int64_t t = 0; t < g.rows; t += kTokenBlock) {
    const std::int64_t tokens = std::min(kTokenBlock, g.rows - t);
    const float* a = g.a.fp32 + t * g.a_stride + i;  // [tokens, high]
    const float* b = g.b.fp32 + t * g.b_stride + j;  // [tokens, wide]
    HWY_DYNAMIC_DISPATCH(add_tile)
    ({high, wide, tokens, a, g.a_stride, b, g.b_stride, g.dw + i * g.q + j, g.q, packed_a, packed_b});
    // By the first tiles of a row or column, while their operand is in cache.
    if (g.a_sums != nullptr && j == 0) add_column_sums(tokens, high, a, g.a_stride, g.a_sums + i);
    if (g.b_sums != nullptr && i == 0) add_column_sums(tokens, wide, b, g.b_stride, g.b_sums + j);
  }
}

}  // namespace

void weight_gradient_fp32(const WeightGradient& g) {
  const TileSize size = tile_size(g.p, g.q);
  const PackedFloats floats = packed_floats(g.rows, g.p, g.q);
  // Of all threads on the calling one's stack: which of them get tasks differs from call to call, what is charged must not.
  Scratch scratch;
  auto* const packed = scratch.take<float>(thread_count() * floats.both());
  const std::int64_t across = ceil_div(g.q, size.wide);
  parallel_for(ceil_div(g.p, size.high) * across, [&](std::int64_t task, int thread) {
    float* const own = packed + thread * floats.both();
    add_part(g, task / across * size.high, task % across * size.wide, own, own + floats.a);
  });
}

std::int64_t weight_gradient_fp32_scratch(std::int64_t rows, std::int64_t p, std::int64_t q) {
  return thread_count() * packed_floats(rows, p, q).both() * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
