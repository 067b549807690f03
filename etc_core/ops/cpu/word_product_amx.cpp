// Intel's Advanced Matrix Extensions: eight tile registers of 16 rows of 64 bytes.
//
//            k: 64 bytes              32 columns                          32 columns
//  16 rows [ x: tile 4 ]  ·  k [ W: tile 6 | tile 7 ]   +=   16 rows [ y: tile 0 | tile 1 ]
//  16 rows [ x: tile 5 ]                                     16 rows [ y: tile 2 | tile 3 ]
//
// Tile numbers are encoded in the instructions, hence the templates. As in sparse/cpu/bf16_tiles_amx.cpp nothing else
// is computed in this file, because the compiler does not know that a tile load reads memory.
#if defined(__x86_64__)

#include "etc_core/ops/cpu/word_product.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "etc_core/base/amx_config.h"
#include "etc_core/base/compute_type.h"

namespace etc::ops::cpu {

namespace {

// The tiles of one step: rows of x into tile 4 (and, with 32 rows, 5), two blocks of W into 6 and 7.
template <bool kBoth>
inline void load_x(const char* x, std::int64_t row_bytes) {
  _tile_loadd(4, x, row_bytes);
  if constexpr (kBoth) _tile_loadd(5, x + kWordRows * row_bytes, row_bytes);
}
inline void load_w(const char* weights) {
  _tile_loadd(6, weights, kWordRowBytes);
  _tile_loadd(7, weights + kWordBlockBytes, kWordRowBytes);
}

template <ComputeType kType, bool kBoth>
inline void add_products() {
  if constexpr (kType == ComputeType::int8) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    if constexpr (kBoth) _tile_dpbusd(2, 5, 6);
    if constexpr (kBoth) _tile_dpbusd(3, 5, 7);
  } else {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kBoth) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kBoth) _tile_dpbf16ps(3, 5, 7);
  }
}

// The six products of parts (word_product.h) of one step, the smallest first. Each load serves the next product, too,
// where the order allows: 14 loads for 24 tile products. x_part, w_part: bytes from part to part.
template <bool kBoth>
inline void add_products_of_parts(const char* x, std::int64_t x_part, std::int64_t row_bytes, const char* weights,
                                  std::int64_t w_part) {
  constexpr ComputeType kType = ComputeType::fp32;
  load_x<kBoth>(x + 2 * x_part, row_bytes);
  load_w(weights);
  add_products<kType, kBoth>();
  load_x<kBoth>(x + x_part, row_bytes);
  add_products<kType, kBoth>();
  load_w(weights + w_part);
  add_products<kType, kBoth>();
  load_x<kBoth>(x, row_bytes);
  add_products<kType, kBoth>();
  load_w(weights + 2 * w_part);
  add_products<kType, kBoth>();
  load_w(weights);
  add_products<kType, kBoth>();
}

// One group of columns: x [32 or 16, k] times weights [steps][2][16 x 64 bytes] into y [32 or 16, 32], rows of y y_row
// bytes apart. kBoth: 32 rows. The four sums stay in the tile registers between the steps. With 16 rows, tiles 2, 3 and
// 5 are not used, so that the last rows of a matrix cost half.
template <ComputeType kType, bool kBoth>
void sum_tiles(const WordProduct& p, const char* x, char* y, std::int64_t y_row) {
  const auto* weights = static_cast<const char*>(p.weights);
  if (p.add) {
    _tile_loadd(0, y, y_row);
    _tile_loadd(1, y + kWordRowBytes, y_row);
    if constexpr (kBoth) _tile_loadd(2, y + kWordRows * y_row, y_row);
    if constexpr (kBoth) _tile_loadd(3, y + kWordRows * y_row + kWordRowBytes, y_row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kBoth) _tile_zero(2);
    if constexpr (kBoth) _tile_zero(3);
  }
  for (std::int64_t step = 0; step < p.steps; ++step) {
    if constexpr (kType == ComputeType::fp32) {
      add_products_of_parts<kBoth>(x, p.steps * kWordRowBytes, p.x_row_bytes, weights, p.steps * 2 * kWordBlockBytes);
    } else {
      load_x<kBoth>(x, p.x_row_bytes);
      load_w(weights);
      add_products<kType, kBoth>();
    }
    x += kWordRowBytes;
    weights += 2 * kWordBlockBytes;
  }
  _tile_stored(0, y, y_row);
  _tile_stored(1, y + kWordRowBytes, y_row);
  if constexpr (kBoth) {
    _tile_stored(2, y + kWordRows * y_row, y_row);
    _tile_stored(3, y + kWordRows * y_row + kWordRowBytes, y_row);
  }
}

// The compiler must neither omit nor move accesses to memory that tile loads read or tile stores write.
inline void order_memory() {
  __asm__ volatile("" ::: "memory");
}

// All rows of y for one group of columns. Tiles that reach beyond y, because it has fewer than 32 columns or not a multiple
// of 16 rows, are stored in a buffer, from which the existing numbers are copied.
template <ComputeType kType>
void multiply(const WordProduct& p) {
  constexpr std::int64_t kCols = kAmxWords.cols(), kGroupRow = kCols * kSumBytes;
  const auto width = static_cast<std::size_t>(p.cols * kSumBytes);
  alignas(64) char group[2 * kWordRows * kGroupRow];  // [32, 32]
  for (std::int64_t row = 0; row < p.m; row += 2 * kWordRows) {
    const char* x = static_cast<const char*>(p.x) + row * p.x_row_bytes;
    char* y = static_cast<char*>(p.y) + row * p.y_row_bytes;
    const bool both = row + kWordRows < p.m;
    const std::int64_t of_tiles = (both ? 2 : 1) * kWordRows, rows = std::min(of_tiles, p.m - row);
    const bool whole = p.cols == kCols && rows == of_tiles;
    for (std::int64_t i = 0; p.add && !whole && i < rows; ++i) {
      std::memcpy(group + i * kGroupRow, y + i * p.y_row_bytes, width);
    }
    char* const to = whole ? y : group;
    const std::int64_t to_row = whole ? p.y_row_bytes : kGroupRow;
    order_memory();
    if (both) {
      sum_tiles<kType, true>(p, x, to, to_row);
    } else {
      sum_tiles<kType, false>(p, x, to, to_row);
    }
    order_memory();
    for (std::int64_t i = 0; !whole && i < rows; ++i) {
      std::memcpy(y + i * p.y_row_bytes, group + i * kGroupRow, width);
    }
  }
}

// The nesting depth of begin_amx(): inner calls must not reset tiles that are in use.
thread_local int depth = 0;

}  // namespace

void begin_amx() {
  static constexpr AmxConfig config;
  if (depth++ == 0) _tile_loadconfig(&config);
}

void end_amx() {
  if (--depth == 0) _tile_release();
}

void amx_bf16(const WordProduct& product) {
  multiply<ComputeType::bf16>(product);
}

void amx_int8(const WordProduct& product) {
  multiply<ComputeType::int8>(product);
}

void amx_fp32(const WordProduct& product) {
  multiply<ComputeType::fp32>(product);
}

}  // namespace etc::ops::cpu

#endif  // __x86_64__
