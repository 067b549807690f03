// Weight gradients in fp32: dw (= or +=) aᵀ·b.
//
// The library is not used: it packs aᵀ anew for every product and is slow for rows whose stride is a multiple of 4 KB,
// as in base and large models; with AVX2 its order of summation also depends on the product's sizes. Here a tile packs
// 512 tokens of its columns once, and an element of dw is the sum over its tokens in order, whatever tile it belongs
// to:
//
//     b: panels of kCols columns            [wide / kCols][tokens][kCols]
//     a: strips of kRows columns            [strip][tokens][kRows], as many as stay in the second-level cache
//     kRows x kCols of dw in registers  (= or +=)  strip · panel
//
// GFLOP/s of one core, dw [3072, 768] and [768, 768]: AMD EPYC, Zen 4, AVX-512 98 and 97, the library 95 and 97; AVX2 94
// and 93, the library 38 and 68. Zen 5, AVX-512, a large product 250: 242 and 236; without RowsToPack 233 and 222.
#include "etc_core/ops/cpu/weight_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/weight_gradient_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/scratch.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#ifndef ETC_CORE_OPS_CPU_WEIGHT_GRADIENT_TILE_
#define ETC_CORE_OPS_CPU_WEIGHT_GRADIENT_TILE_
namespace etc::ops::cpu {

// Columns of a that are packed at a time: 390 KB for 512 tokens.
inline constexpr std::int64_t kPackedRows = 192;
// Multiples of the register tiles of all instruction sets.
inline constexpr std::int64_t kRowUnit = 24, kColUnit = 48;

// A part of dw [high, wide] and one block of tokens.
struct PackedTile {
  std::int64_t high, wide, tokens;
  std::int64_t next_tokens;  // tokens of the next block
  const float* a;            // [tokens, high], rows a_stride apart
  std::int64_t a_stride;
  const float* b;  // [tokens, wide]
  std::int64_t b_stride;
  float* dw;  // [high, wide]
  std::int64_t dw_stride;
  bool add;         // false: dw =, true: dw +=
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

// The register tile: 24 sums, 3 vectors of b and one number of a in the 32 registers of AVX-512; 12, 3 and 1 in the 16
// of older instruction sets (6 rows by 2 vectors are 4 to 10 % slower if the other hardware thread of the core is busy).
// There are about half as many loads as multiplications.
constexpr int kRows = kLanes == 16 ? 8 : 4;
constexpr int kVectors = 3;
constexpr std::int64_t kCols = kVectors * kLanes;
constexpr std::int64_t kLine = 16;            // numbers of a cache line
constexpr std::int64_t kPrefetchTokens = 32;  // multiplied between two prefetch requests
// Tokens per loop iteration: the number of instructions matters if another thread shares the core
// (sparse/cpu/register_tile-inl.h).
constexpr int kTurnTokens = kLanes == 16 ? 1 : 4;
static_assert(kRowUnit % kRows == 0 && kColUnit % kCols == 0 && kPackedRows % kRowUnit == 0);

// to [kWidth] = from [count], padded with zeros.
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

// to [columns / kWidth][tokens][kWidth] = from [tokens, columns], padded with zeros after the last column. Goes down
// the rows in strips of kColUnit columns (whole cache lines), with software prefetch because hardware prefetchers do
// not follow rows so far apart.
template <std::int64_t kWidth>
HWY_INLINE void pack_columns(const float* from, std::int64_t stride, std::int64_t tokens, std::int64_t columns,
                             float* to) {
  constexpr std::int64_t kRowsToPack = 32;
  for (std::int64_t first = 0; first < columns; first += kColUnit) {
    const std::int64_t end = std::min(columns, first + kColUnit);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float* const row = from + t * stride;
      if (t + kRowsToPack < tokens) {
        for (std::int64_t col = first; col < end; col += kLine) hwy::Prefetch(row + kRowsToPack * stride + col);
      }
      for (std::int64_t col = first; col < end; col += kWidth) {
        copy_columns<kWidth>(row + col, columns - col, to + col * tokens + t * kWidth);
      }
    }
  }
}

// Prefetches the rows to be packed next, a few cache lines at a time while others are multiplied. For a small dw this
// saves a tenth of the time.
class RowsToPack {
 public:
  // `rows` rows of `columns` numbers, `stride` apart, in `times` calls of prefetch().
  HWY_INLINE RowsToPack(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                        std::int64_t times)
      : row_(from), stride_(stride), rows_(rows), columns_(columns) {
    lines_ = ceil_div(rows * ceil_div(columns, kLine), times);
  }

  HWY_INLINE void prefetch() {
    for (std::int64_t n = 0; n < lines_ && rows_ > 0; ++n) {
      hwy::Prefetch(row_ + col_);
      col_ += kLine;
      if (col_ < columns_) continue;
      col_ = 0;
      row_ += stride_;
      --rows_;
    }
  }

 private:
  const float* row_;
  std::int64_t stride_, rows_, columns_, lines_ = 0, col_ = 0;
};

// The prefetches of both operands.
struct Ahead {
  RowsToPack a, b;
};

// sum [kRows][kVectors] = sum over the tokens of a[t][row] * b[t][col], one after the other.   a [tokens, kRows],
// b [tokens, kCols]
HWY_INLINE void sum_of_products(const float* a, const float* b, std::int64_t tokens, Ahead& ahead,
                                FloatVec (&sum)[kRows][kVectors]) {
  const FloatTag d;
  HWY_UNROLL(8)
  for (auto& row : sum) {
    HWY_UNROLL(3)
    for (FloatVec& s : row) s = hn::Zero(d);
  }
  for (std::int64_t first = 0; first < tokens; first += kPrefetchTokens) {
    ahead.a.prefetch();
    ahead.b.prefetch();
    const std::int64_t count = std::min(kPrefetchTokens, tokens - first);
    HWY_UNROLL(kTurnTokens)
    for (std::int64_t t = 0; t < count; ++t, a += kRows, b += kCols) {
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
}

// Prefetches the part of dw that put_sums will write.
HWY_INLINE void prefetch_ahead(float* dw, std::int64_t stride) {
  HWY_UNROLL(8)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) hwy::Prefetch(dw + row * stride + v * kLanes);
  }
}

// dw [high, wide] (= or, with add, +=) sum; high <= kRows, wide <= kCols.
HWY_INLINE void put_sums(const FloatVec (&sum)[kRows][kVectors], std::int64_t high, std::int64_t wide, bool add,
                         float* dw, std::int64_t stride) {
  const FloatTag d;
  if (high == kRows && wide == kCols) {
    HWY_UNROLL(8)
    for (int row = 0; row < kRows; ++row) {
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        float* const place = dw + row * stride + v * kLanes;  // [kLanes]
        hn::StoreU(add ? hn::Add(hn::LoadU(d, place), sum[row][v]) : sum[row][v], d, place);
      }
    }
    return;
  }
  HWY_ALIGN float sums[kRows * kCols];
  for (int row = 0; row < kRows; ++row) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[row][v], d, sums + row * kCols + v * kLanes);
  }
  for (std::int64_t row = 0; row < high; ++row) {
    for (std::int64_t col = 0; col < wide; ++col) {
      float& place = dw[row * stride + col];
      place = add ? place + sums[row * kCols + col] : sums[row * kCols + col];
    }
  }
}

// Rows [first, first + count) of dw; the corresponding columns of a are packed together.
struct RowRange {
  std::int64_t first, count;
  // Number of prefetch() calls while one panel of b is multiplied with these rows.
  std::int64_t prefetches(const PackedTile& tile) const {
    return ceil_div(count, kRows) * ceil_div(tile.tokens, kPrefetchTokens);
  }
};

// The columns of a after those of `rows`: for the same tokens, or the first columns of the next block of tokens.
HWY_INLINE RowsToPack a_behind(const PackedTile& tile, const RowRange& rows) {
  const std::int64_t prefetches = rows.prefetches(tile) * ceil_div(tile.wide, kCols), next = rows.first + rows.count;
  if (next < tile.high) {
    return {tile.a + next, tile.a_stride, tile.tokens, std::min(kPackedRows, tile.high - next), prefetches};
  }
  return {tile.a + tile.tokens * tile.a_stride, tile.a_stride, tile.next_tokens, std::min(kPackedRows, tile.high),
          prefetches};
}

// The columns of b to prefetch while the columns before `end` are multiplied. They are packed only together with the
// first rows of dw, so later rows prefetch nothing, except that the last ones prefetch the first columns of the next
// block.
HWY_INLINE RowsToPack b_behind(const PackedTile& tile, const RowRange& rows, std::int64_t end) {
  const std::int64_t prefetches = rows.prefetches(tile) * (kColUnit / kCols);
  if (rows.first == 0 && end < tile.wide) {
    return {tile.b + end, tile.b_stride, tile.tokens, std::min(kColUnit, tile.wide - end), prefetches};
  }
  const bool last = rows.first + rows.count == tile.high && end == tile.wide;
  return {tile.b + tile.tokens * tile.b_stride, tile.b_stride, last ? tile.next_tokens : 0,
          std::min(kColUnit, tile.wide), prefetches};
}

// dw of `rows` and columns [col, end) (= or +=) their products.
HWY_INLINE void multiply(const PackedTile& tile, const RowRange& rows, std::int64_t col, std::int64_t end,
                         Ahead& ahead) {
  for (; col < end; col += kCols) {
    for (std::int64_t row = 0; row < rows.count; row += kRows) {
      float* const dw = tile.dw + (rows.first + row) * tile.dw_stride + col;
      prefetch_ahead(dw, tile.dw_stride);
      FloatVec sum[kRows][kVectors];
      sum_of_products(tile.packed_a + row * tile.tokens, tile.packed_b + col * tile.tokens, tile.tokens, ahead, sum);
      put_sums(sum, std::min<std::int64_t>(kRows, rows.count - row), std::min(kCols, end - col), tile.add, dw,
               tile.dw_stride);
    }
  }
}

void multiply_tile(const PackedTile& tile) {
  for (std::int64_t first = 0; first < tile.high; first += kPackedRows) {
    const RowRange rows{first, std::min(kPackedRows, tile.high - first)};
    pack_columns<kRows>(tile.a + first, tile.a_stride, tile.tokens, rows.count, tile.packed_a);
    Ahead ahead{a_behind(tile, rows), {nullptr, 0, 0, 0, 1}};
    // All strips of a use one panel of b while it is in cache.
    for (std::int64_t col = 0; col < tile.wide; col += kColUnit) {
      const std::int64_t end = std::min(tile.wide, col + kColUnit);
      if (first == 0) {
        pack_columns<kCols>(tile.b + col, tile.b_stride, tile.tokens, end - col, tile.packed_b + col * tile.tokens);
      }
      ahead.b = b_behind(tile, rows, end);
      multiply(tile, rows, col, end, ahead);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {

// Tile sizes of dw; all give the same bits. Largest first, since larger tiles pack less per multiplication.
struct TileSize {
  std::int64_t high, wide;
};
constexpr TileSize kTileSizes[] = {{768, 768}, {384, 768}, {384, 384}, {192, 384}, {192, 192}, {96, 96}};

// The largest size that gives every thread two tiles, for load balance.
TileSize tile_size(std::int64_t p, std::int64_t q) {
  const std::int64_t threads = thread_count(), tasks = threads == 1 ? 1 : 2 * threads;
  const auto enough = [&](TileSize tile) { return ceil_div(p, tile.high) * ceil_div(q, tile.wide) >= tasks; };
  const auto found = std::find_if(std::begin(kTileSizes), std::end(kTileSizes), enough);
  return found != std::end(kTileSizes) ? *found : *std::prev(found);
}

// Numbers of floats into which one thread packs the tokens of a tile.
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
void multiply_part(const WeightGradient& g, std::int64_t i, std::int64_t j, float* packed_a, float* packed_b) {
  const TileSize size = tile_size(g.p, g.q);
  const std::int64_t high = std::min(size.high, g.p - i), wide = std::min(size.wide, g.q - j);
  for (std::int64_t t = 0; t < g.rows; t += kTokenBlock) {
    const std::int64_t tokens = std::min(kTokenBlock, g.rows - t);
    const float* a = g.a.fp32 + t * g.a_stride + i;  // [tokens, high]
    const float* b = g.b.fp32 + t * g.b_stride + j;  // [tokens, wide]
    ETC_DISPATCH(multiply_tile)
    ({high, wide, tokens, std::min(kTokenBlock, g.rows - t - tokens), a, g.a_stride, b, g.b_stride, g.dw + i * g.q + j,
      g.q, g.add || t > 0, packed_a, packed_b});
    // The column sums are added by the first tiles of a row or column, while their operand is in cache.
    if (g.a_sums != nullptr && j == 0) add_column_sums(tokens, high, a, g.a_stride, g.a_sums + i);
    if (g.b_sums != nullptr && i == 0) add_column_sums(tokens, wide, b, g.b_stride, g.b_sums + j);
  }
}

}  // namespace

void weight_gradient_fp32(const WeightGradient& g) {
  const TileSize size = tile_size(g.p, g.q);
  const PackedFloats floats = packed_floats(g.rows, g.p, g.q);
  // The buffers of all threads are on the calling thread's stack: which threads get tasks differs from call to call,
  // but the memory that is charged must not.
  Scratch scratch;
  auto* const packed = scratch.take<float>(thread_count() * floats.both());
  const std::int64_t across = ceil_div(g.q, size.wide);
  parallel_for(ceil_div(g.p, size.high) * across, [&](std::int64_t task, int thread) {
    float* const own = packed + thread * floats.both();
    multiply_part(g, task / across * size.high, task % across * size.wide, own, own + floats.a);
  });
}

std::int64_t weight_gradient_fp32_scratch(std::int64_t rows, std::int64_t p, std::int64_t q) {
  return thread_count() * packed_floats(rows, p, q).both() * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
