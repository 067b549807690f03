// Intel's Advanced Matrix Extensions: eight tile registers of 16 rows of 64 bytes; one instruction multiplies a tile of
// 16x32 bf16 numbers with one of 32x16 and adds to a tile of 16x16 floats.
//
// The tile numbers are part of the instructions, hence the templates and the constant branches. This file includes no
// other arithmetic, so that the compiler can move nothing around the tile loads, which it does not know to read memory.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "etc_core/base/amx_config.h"
#include "sparse/cpu/bf16_round.h"
#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {

namespace {

constexpr std::int64_t kRowBytes = 64;
constexpr std::int64_t kMostSteps = 4;   // of queries kept in tiles: D = 128
constexpr std::int64_t kMostBlocks = 4;  // of output components kept in tiles: D = 64

// The shapes of all eight tiles: 16 rows of 64 bytes. Loading them zeroes the tiles: once per task, not per product.
void begin() {
  static constexpr AmxConfig config;
  _tile_loadconfig(&config);
}

// Tiles in use make every switch of threads save 8 KiB; a thread that is done gives them back.
void end() {
  _tile_release();
}

// Tiles: 0, 1 sums; 2, 3 keys; 4-7 queries.
template <int kSteps>
inline void load_queries(const std::uint16_t* q_pairs) {
  constexpr std::int64_t kStep = kTilePairs * kGroup;
  _tile_loadd(4, q_pairs, kRowBytes);
  if constexpr (kSteps > 1) _tile_loadd(5, q_pairs + kStep, kRowBytes);
  if constexpr (kSteps > 2) _tile_loadd(6, q_pairs + 2 * kStep, kRowBytes);
  if constexpr (kSteps > 3) _tile_loadd(7, q_pairs + 3 * kStep, kRowBytes);
}

// One block of 16 keys. Its products wait for each other, but two tiles of keys alternate, so that loads need not wait.
//   k [16, stride], rows `row` bytes apart; s [16, kGroup]
template <int kSteps, bool kAdd>
inline void dot_block(const std::uint16_t* k, std::int64_t row, float* s) {
  if constexpr (kAdd) {
    _tile_loadd(0, s, kRowBytes);
  } else {
    _tile_zero(0);
  }
  _tile_loadd(2, k, row);
  _tile_dpbf16ps(0, 2, 4);
  if constexpr (kSteps > 1) {
    _tile_loadd(3, k + 32, row);
    _tile_dpbf16ps(0, 3, 5);
  }
  if constexpr (kSteps > 2) {
    _tile_loadd(2, k + 64, row);
    _tile_dpbf16ps(0, 2, 6);
  }
  if constexpr (kSteps > 3) {
    _tile_loadd(3, k + 96, row);
    _tile_dpbf16ps(0, 3, 7);
  }
  _tile_stored(0, s, kRowBytes);
}

// Two blocks of 16 keys at a time, so that one's products hide the other's latency.
template <int kSteps, bool kAdd>
void dot_steps(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys, float* s) {
  // Bytes from row to row of k, and elements from block to block.
  const std::int64_t row = stride * 2, block = kTileRows16 * stride;
  load_queries<kSteps>(q_pairs);
  std::int64_t j = 0;
  for (; j + kTileRows16 < keys; j += 2 * kTileRows16, k += 2 * block, s += 2 * kTileRows16 * kGroup) {
    if constexpr (kAdd) {
      _tile_loadd(0, s, kRowBytes);
      _tile_loadd(1, s + kTileRows16 * kGroup, kRowBytes);
    } else {
      _tile_zero(0);
      _tile_zero(1);
    }
    _tile_loadd(2, k, row);
    _tile_dpbf16ps(0, 2, 4);
    _tile_loadd(3, k + block, row);
    _tile_dpbf16ps(1, 3, 4);
    if constexpr (kSteps > 1) {
      _tile_loadd(2, k + 32, row);
      _tile_dpbf16ps(0, 2, 5);
      _tile_loadd(3, k + block + 32, row);
      _tile_dpbf16ps(1, 3, 5);
    }
    if constexpr (kSteps > 2) {
      _tile_loadd(2, k + 64, row);
      _tile_dpbf16ps(0, 2, 6);
      _tile_loadd(3, k + block + 64, row);
      _tile_dpbf16ps(1, 3, 6);
    }
    if constexpr (kSteps > 3) {
      _tile_loadd(2, k + 96, row);
      _tile_dpbf16ps(0, 2, 7);
      _tile_loadd(3, k + block + 96, row);
      _tile_dpbf16ps(1, 3, 7);
    }
    _tile_stored(0, s, kRowBytes);
    _tile_stored(1, s + kTileRows16 * kGroup, kRowBytes);
  }
  if (j < keys) dot_block<kSteps, kAdd>(k, row, s);  // an odd one is left
}

// The number of steps is part of the instructions (tile numbers), hence one version for each.
template <bool kAdd>
void dot_some_steps(std::int64_t steps, const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride,
                    std::int64_t keys, float* s) {
  switch (steps) {
    case 1:
      return dot_steps<1, kAdd>(q_pairs, k, stride, keys, s);
    case 2:
      return dot_steps<2, kAdd>(q_pairs, k, stride, keys, s);
    case 3:
      return dot_steps<3, kAdd>(q_pairs, k, stride, keys, s);
    default:
      return dot_steps<4, kAdd>(q_pairs, k, stride, keys, s);
  }
}

void dot_products(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                  float* s) {
  // Heads wider than four steps go round again and add to what is there.
  std::int64_t left = stride / kTilePairs;
  dot_some_steps<false>(left, q_pairs, k, stride, keys, s);
  for (left -= kMostSteps; left > 0; left -= kMostSteps) {
    q_pairs += kMostSteps * kTilePairs * kGroup;
    k += kMostSteps * kTilePairs;
    dot_some_steps<true>(left, q_pairs, k, stride, keys, s);
  }
}

// Tiles: 0-3 sums; 4, 5 values; 6 weights.
template <int kBlocks>
void weigh_blocks(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t v_stride, std::int64_t keys,
                  float* o) {
  constexpr std::int64_t kBlock = kTileRows16 * kGroup;
  // Bytes from row to row of v, and elements from block to block of 16 components.
  const std::int64_t row = v_stride * 2, block = kTileRows16 * v_stride;
  // The output so far is read, added to and written back once per step of 32 keys.
  _tile_loadd(0, o, kRowBytes);
  if constexpr (kBlocks > 1) _tile_loadd(1, o + kBlock, kRowBytes);
  if constexpr (kBlocks > 2) _tile_loadd(2, o + 2 * kBlock, kRowBytes);
  if constexpr (kBlocks > 3) _tile_loadd(3, o + 3 * kBlock, kRowBytes);
  for (std::int64_t j = 0; j < keys; j += kTilePairs) {
    // One tile of weights serves all blocks of components; values are read once.
    _tile_loadd(6, w_pairs + j * kGroup, kRowBytes);
    _tile_loadd(4, v + j, row);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kBlocks > 1) {
      _tile_loadd(5, v + block + j, row);
      _tile_dpbf16ps(1, 5, 6);
    }
    if constexpr (kBlocks > 2) {
      _tile_loadd(4, v + 2 * block + j, row);
      _tile_dpbf16ps(2, 4, 6);
    }
    if constexpr (kBlocks > 3) {
      _tile_loadd(5, v + 3 * block + j, row);
      _tile_dpbf16ps(3, 5, 6);
    }
  }
  _tile_stored(0, o, kRowBytes);
  if constexpr (kBlocks > 1) _tile_stored(1, o + kBlock, kRowBytes);
  if constexpr (kBlocks > 2) _tile_stored(2, o + 2 * kBlock, kRowBytes);
  if constexpr (kBlocks > 3) _tile_stored(3, o + 3 * kBlock, kRowBytes);
}

void weighted_sum(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t v_stride, std::int64_t keys,
                  std::int64_t components, float* o) {
  // Four sums at a time: with two tiles of values and one of weights that is what eight tiles hold.
  for (std::int64_t left = components / kTileRows16; left > 0; left -= kMostBlocks) {
    switch (left) {
      case 1:
        return weigh_blocks<1>(w_pairs, v, v_stride, keys, o);
      case 2:
        return weigh_blocks<2>(w_pairs, v, v_stride, keys, o);
      case 3:
        return weigh_blocks<3>(w_pairs, v, v_stride, keys, o);
      default:
        weigh_blocks<4>(w_pairs, v, v_stride, keys, o);
    }
    v += kMostBlocks * kTileRows16 * v_stride;
    o += kMostBlocks * kTileRows16 * kGroup;
  }
}

// 16 keys by all components: one tile of weights, whose upper half meets zeros.   g [16, stride]
void outer_blocks(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride, float* g) {
  // Bytes from row to row of g, and of pairs.
  const std::int64_t row = stride * 4;
  _tile_loadd(6, w, kRowBytes / 2);
  std::int64_t c = 0;
  // Two sums, so that one's product hides the other's latency.
  for (; c + kTileRows16 < stride; c += 2 * kTileRows16) {
    _tile_loadd(0, g + c, row);
    _tile_loadd(1, g + c + kTileRows16, row);
    _tile_loadd(4, x_pairs + 2 * c, row);
    _tile_loadd(5, x_pairs + 2 * (c + kTileRows16), row);
    _tile_dpbf16ps(0, 6, 4);
    _tile_dpbf16ps(1, 6, 5);
    _tile_stored(0, g + c, row);
    _tile_stored(1, g + c + kTileRows16, row);
  }
  if (c == stride) return;
  _tile_loadd(0, g + c, row);
  _tile_loadd(4, x_pairs + 2 * c, row);
  _tile_dpbf16ps(0, 6, 4);
  _tile_stored(0, g + c, row);
}

void outer_products(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride, std::int64_t keys,
                    float* g) {
  for (std::int64_t j = 0; j < keys; j += kTileRows16) outer_blocks(w + j * kGroup, x_pairs, stride, g + j * stride);
}

}  // namespace

// A table of functions: which kind of tiles runs is known at run time only.
const Bf16Tiles& amx_bf16_tiles() {
  static constexpr Bf16Tiles tiles{kTilePairs,         begin,        end,          round_row_avx512,
                                   round_pairs_avx512, dot_products, weighted_sum, outer_products};
  return tiles;
}

}  // namespace etc::sparse

#endif  // __x86_64__
