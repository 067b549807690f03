// The products of an attention group with bf16 operands and fp32 sums: with matrix tiles (AMX), with vector dot
// products (AVX512-BF16), or in plain C++ for tests.
//
// Operands have AMX's layout: the left one in rows, the right one in pairs of adjacent rows. bf16 numbers are the upper
// 16 bits of a float.
//   q_pairs [stride/2, kGroup, 2]   queries; a pair is two adjacent components of one query
//   w_pairs [keys/2, kGroup, 2]     weights; a pair is two adjacent keys of one query
//   x_pairs [16, stride, 2]         two groups' queries; a pair is two adjacent queries of one component
#pragma once

#include <cstdint>

#include "sparse/visible_tiles.h"

namespace etc::sparse {

inline constexpr std::int64_t kTileRows16 = 16;  // rows of a tile
inline constexpr std::int64_t kTilePairs = 32;   // bf16 numbers in a tile row: components or keys of one step
inline constexpr std::int64_t kTileGroups = 2;   // groups whose queries fill a tile row
static_assert(kTileGroups * kGroup == kTilePairs);

struct Bf16Tiles {
  // weighted_sum takes a multiple of it, from a multiple of it on: tiles are read from whole cache lines, pairs from even
  // positions.
  std::int64_t key_alignment;

  // Whether the processor has AVX-512's conversions to bf16.
  bool converts;
  // Whether the products are AMX instructions, which may be issued between vector instructions (bf16_interleave.h).
  bool interleaves;

  // Called before and after the products of one thread's task.
  void (*begin)();
  void (*end)();

  // to[c] = row[c] rounded to nearest even for c < size; 0 for size <= c < stride. stride a multiple of 32. Subnormal
  // numbers may become 0, since the products treat them as 0.
  void (*round_row)(const float* row, std::int64_t size, std::int64_t stride, std::uint16_t* to);

  // Rounds two rows (null: zeros) in the same way and interleaves them.   to [stride, 2]; stride a multiple of 16
  void (*round_pairs)(const float* first, const float* second, std::int64_t size, std::int64_t stride,
                      std::uint16_t* to);

  // s[j][i] = sum_d k[j][d] q[d][i]
  //   k [keys, stride], s [keys, kGroup]; keys is rounded up to a multiple of 16: k and s must have these rows, whose
  //   contents do not matter; stride a multiple of 32, components beyond D are 0
  void (*dot_products)(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                       float* s);

  // dot_products of at most kTilePairs keys in two parts, so that work between them hides the products' latency: the
  // first multiplies, the second stores s. In between, no product but weighted_sum may be called.
  void (*begin_dots)(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                     float* s);
  void (*end_dots)(std::int64_t keys, float* s);

  // A group's sums o [components, kGroup], components a multiple of 16. open_sums reads o and close_sums writes it; in
  // between the sums are in registers, if there are enough, and o itself must not be accessed.
  void (*open_sums)(std::int64_t components, const float* o);
  void (*close_sums)(std::int64_t components, float* o);

  // o[d][i] += sum_j v[d][j] w[j][i], between open_sums and close_sums of o
  //   v [components, kTilePairs]: a row holds one component of at most kTilePairs keys; keys is rounded up to a multiple
  //   of key_alignment: the padding must have weight 0 and finite v
  void (*weighted_sum)(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t keys, std::int64_t components,
                       float* o);

  // g[j][c] += sum_i w[j][i] x[i][c] over the queries of two groups, for the keys of those tiles (of 16 rows) whose
  // `touched` is not 0; not between open_sums and close_sums.
  //   w [16·tiles, 32]; x_pairs [16, stride, 2]; stride a multiple of 16;  g [16·tiles, stride]
  void (*outer_products)(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride,
                         const std::uint8_t* touched, std::int64_t tiles, float* g);
};

// Calls begin() and end() around a task; null: fp32, nothing to do.
class TileUse {
 public:
  explicit TileUse(const Bf16Tiles* tiles) : tiles_(tiles) {
    if (tiles_ != nullptr) tiles_->begin();
  }
  ~TileUse() {
    if (tiles_ != nullptr) tiles_->end();
  }
  TileUse(const TileUse&) = delete;
  TileUse& operator=(const TileUse&) = delete;

 private:
  const Bf16Tiles* tiles_;
};

const Bf16Tiles& plain_bf16_tiles();

// The fastest implementation for this processor: AMX, AVX512-BF16, or the plain one, which is slow.
const Bf16Tiles& bf16_tiles();

}  // namespace etc::sparse
