// Intel's Advanced Matrix Extensions: eight tile registers of 16 rows of 64 bytes; one instruction multiplies a tile of
// 16x32 bf16 numbers with one of 32x16 and adds to a tile of 16x16 floats.
//
// The tile numbers are part of the instructions, hence the templates and the constant branches. This file contains no
// other arithmetic, because the compiler does not know that tile loads read memory and might move code across them.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "etc_core/base/amx_config.h"
#include "sparse/cpu/bf16_round.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

namespace {

// Tile registers: 0-3 a group's open sums; 4, 5 sums of one call, or of dots between begin and end; 6 the left operand, 7
// the right one.
constexpr std::int64_t kRowBytes = 64;
constexpr std::int64_t kOpenBlocks = 4;  // blocks of 16 output components that stay in tiles: D = 64
constexpr std::int64_t kBlock = kTileRows16 * kGroup;

// Configures all eight tiles as 16 rows of 64 bytes. This zeroes the tiles; it is done once per task, not per product.
void begin() {
  static constexpr AmxConfig config;
  _tile_loadconfig(&config);
}

// While tiles are in use every context switch saves 8 KiB, so a thread releases them after a task.
void end() {
  _tile_release();
}

// Two blocks of 16 keys at a time, so that the products of one hide the latency of the other, and both use one tile of
// queries. The sums stay in tiles 4 and 5.
//   q_pairs [stride/2, kGroup, 2], k [32, stride]
void multiply_two_blocks(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride) {
  // Row stride of k in bytes.
  const std::int64_t row = stride * 2;
  const std::uint16_t* const second = k + kTileRows16 * stride;
  _tile_zero(4);
  _tile_zero(5);
  for (std::int64_t d = 0; d < stride; d += kTilePairs) {
    _tile_loadd(7, q_pairs + d * kGroup, kRowBytes);
    _tile_loadd(6, k + d, row);
    _tile_dpbf16ps(4, 6, 7);
    _tile_loadd(6, second + d, row);
    _tile_dpbf16ps(5, 6, 7);
  }
}

// One block; the sums stay in tile 4.
void multiply_one_block(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride) {
  _tile_zero(4);
  for (std::int64_t d = 0; d < stride; d += kTilePairs) {
    _tile_loadd(7, q_pairs + d * kGroup, kRowBytes);
    _tile_loadd(6, k + d, stride * 2);
    _tile_dpbf16ps(4, 6, 7);
  }
}

void begin_dots(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys, float*) {
  keys > kTileRows16 ? multiply_two_blocks(q_pairs, k, stride) : multiply_one_block(q_pairs, k, stride);
}

//   s [16 or 32, kGroup]
void end_dots(std::int64_t keys, float* s) {
  _tile_stored(4, s, kRowBytes);
  if (keys > kTileRows16) _tile_stored(5, s + kBlock, kRowBytes);
}

void dot_products(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                  float* s) {
  for (std::int64_t j = 0; j < keys; j += 2 * kTileRows16) {
    begin_dots(q_pairs, k + j * stride, stride, keys - j, nullptr);
    end_dots(keys - j, s + j * kGroup);
  }
}

// Heads that are too wide for the tiles keep their sums in memory.
bool stays_in_tiles(std::int64_t components) {
  return components <= kOpenBlocks * kTileRows16;
}

void open_sums(std::int64_t components, const float* o) {
  if (!stays_in_tiles(components)) return;
  _tile_loadd(0, o, kRowBytes);
  if (components > kTileRows16) _tile_loadd(1, o + kBlock, kRowBytes);
  if (components > 2 * kTileRows16) _tile_loadd(2, o + 2 * kBlock, kRowBytes);
  if (components > 3 * kTileRows16) _tile_loadd(3, o + 3 * kBlock, kRowBytes);
}

void close_sums(std::int64_t components, float* o) {
  if (!stays_in_tiles(components)) return;
  _tile_stored(0, o, kRowBytes);
  if (components > kTileRows16) _tile_stored(1, o + kBlock, kRowBytes);
  if (components > 2 * kTileRows16) _tile_stored(2, o + 2 * kBlock, kRowBytes);
  if (components > 3 * kTileRows16) _tile_stored(3, o + 3 * kBlock, kRowBytes);
}

// All blocks of components use the same tile of weights.
template <int kBlocks>
void weigh_in_tiles(const std::uint16_t* w_pairs, const std::uint16_t* v) {
  constexpr std::int64_t kNumbers = kTileRows16 * kTilePairs;  // of a block
  _tile_loadd(7, w_pairs, kRowBytes);
  _tile_loadd(6, v, kRowBytes);
  _tile_dpbf16ps(0, 6, 7);
  if constexpr (kBlocks > 1) {
    _tile_loadd(6, v + kNumbers, kRowBytes);
    _tile_dpbf16ps(1, 6, 7);
  }
  if constexpr (kBlocks > 2) {
    _tile_loadd(6, v + 2 * kNumbers, kRowBytes);
    _tile_dpbf16ps(2, 6, 7);
  }
  if constexpr (kBlocks > 3) {
    _tile_loadd(6, v + 3 * kNumbers, kRowBytes);
    _tile_dpbf16ps(3, 6, 7);
  }
}

// One block of 16 components. Tile 0 is free, since nothing is open in tiles.
void weigh_in_memory(const std::uint16_t* w_pairs, const std::uint16_t* v, float* o) {
  _tile_loadd(0, o, kRowBytes);
  _tile_loadd(7, w_pairs, kRowBytes);
  _tile_loadd(6, v, kRowBytes);
  _tile_dpbf16ps(0, 6, 7);
  _tile_stored(0, o, kRowBytes);
}

// Whole tiles; the padding has weight 0. Tile numbers are part of the instructions, hence one version per number of
// blocks.
void weighted_sum(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t, std::int64_t components,
                  float* o) {
  switch (components / kTileRows16) {
    case 1:
      return weigh_in_tiles<1>(w_pairs, v);
    case 2:
      return weigh_in_tiles<2>(w_pairs, v);
    case 3:
      return weigh_in_tiles<3>(w_pairs, v);
    case 4:
      return weigh_in_tiles<4>(w_pairs, v);
    default:
      for (std::int64_t d = 0; d < components; d += kTileRows16) {
        weigh_in_memory(w_pairs, v + d * kTilePairs, o + d * kGroup);
      }
  }
}

// 16 keys of D = 64 components by the queries in tiles 0 to 3; two blocks of components at a time hide each other's
// latency.
void outer_tile_of_64(const std::uint16_t* w, float* g) {
  constexpr std::int64_t kRow = 64 * 4;
  _tile_loadd(6, w, kRowBytes);
  _tile_loadd(4, g, kRow);
  _tile_loadd(5, g + 16, kRow);
  _tile_dpbf16ps(4, 6, 0);
  _tile_dpbf16ps(5, 6, 1);
  _tile_loadd(7, g + 32, kRow);
  _tile_stored(4, g, kRow);
  _tile_loadd(4, g + 48, kRow);
  _tile_stored(5, g + 16, kRow);
  _tile_dpbf16ps(7, 6, 2);
  _tile_dpbf16ps(4, 6, 3);
  _tile_stored(7, g + 32, kRow);
  _tile_stored(4, g + 48, kRow);
}

void outer_products(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride,
                    const std::uint8_t* touched, std::int64_t tiles, float* g) {
  constexpr std::int64_t kNumbers = kTileRows16 * kTilePairs;
  const std::int64_t row = stride * 4;  // of g and of pairs in bytes
  if (stride == 64) {
    _tile_loadd(0, x_pairs, row);
    _tile_loadd(1, x_pairs + 32, row);
    _tile_loadd(2, x_pairs + 64, row);
    _tile_loadd(3, x_pairs + 96, row);
    for (std::int64_t n = 0; n < tiles; ++n) {
      if (touched[n] != 0) outer_tile_of_64(w + n * kNumbers, g + n * kTileRows16 * stride);
    }
    return;
  }
  for (std::int64_t c = 0; c < stride; c += kTileRows16) {
    _tile_loadd(7, x_pairs + 2 * c, row);
    for (std::int64_t n = 0; n < tiles; ++n) {
      if (touched[n] == 0) continue;
      float* const sums = g + n * kTileRows16 * stride + c;
      _tile_loadd(6, w + n * kNumbers, kRowBytes);
      _tile_loadd(4, sums, row);
      _tile_dpbf16ps(4, 6, 7);
      _tile_stored(4, sums, row);
    }
  }
}

}  // namespace

// A table of functions, because the implementation is selected at run time.
const Bf16Tiles& amx_bf16_tiles() {
  static constexpr Bf16Tiles tiles{kTilePairs,         true,          true,       begin,    end,       round_row_avx512,
                                   round_pairs_avx512, dot_products,  begin_dots, end_dots, open_sums, close_sums,
                                   weighted_sum,       outer_products};
  return tiles;
}

}  // namespace etc::sparse

#endif  // __x86_64__
