// The products of an attention group with bf16 operands and fp32 sums, by a processor's matrix tiles (AMX), by dot
// products of vectors (AVX-512's BF16 part), or in plain C++, for tests.
//
// Operands lie as AMX wants them: the left one in rows, the right one in pairs of neighbouring rows. bf16 numbers are
// the upper 16 bits of a float.
//   q_pairs [stride/2, kGroup, 2]   queries; a pair is two neighbouring components of one query
//   w_pairs [keys/2, kGroup, 2]     weights; a pair is two neighbouring keys of one query
//   x_pairs [16, stride, 2]         queries; a pair is two neighbouring queries, one component
#pragma once

#include <cstdint>

#include "sparse/visible_tiles.h"

namespace etc::sparse {

inline constexpr std::int64_t kTileRows16 = 16;  // rows of a tile
inline constexpr std::int64_t kTilePairs = 32;   // bf16 numbers of a tile's row: components or keys of one step

struct Bf16Tiles {
  // Steps of keys end on multiples of it, and weighted_sum takes whole ones: tiles are read from whole lines of the
  // cache, pairs from even places.
  std::int64_t key_alignment;

  // Around the calls of one thread's task.
  void (*begin)();
  void (*end)();

  // to[c] = row[c] rounded to nearest even, c < size; 0 for c < stride beyond. stride a multiple of 32. Subnormal
  // numbers may become 0: the products take them for that.
  void (*round_row)(const float* row, std::int64_t size, std::int64_t stride, std::uint16_t* to);

  // Two rows (null: zeros) the same way, as pairs of neighbouring rows.   to [stride, 2]; stride a multiple of 16
  void (*round_pairs)(const float* first, const float* second, std::int64_t size, std::int64_t stride,
                      std::uint16_t* to);

  // s[j][i] = sum_d k[j][d] q[d][i]
  //   k [keys, stride], s [keys, kGroup]; keys is rounded up to a multiple of 16: there must be room for that in k and
  //   s, and what lies there may be anything; stride a multiple of 32, components beyond D are 0
  void (*dot_products)(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                       float* s);

  // A group's sums o [components, kGroup], components a multiple of 16, between open_sums, which reads o, and close_sums,
  // which writes it: in registers where there are enough, and o itself must not be touched.
  void (*open_sums)(std::int64_t components, const float* o);
  void (*close_sums)(std::int64_t components, float* o);

  // o[d][i] += sum_j v[d][j] w[j][i], between open_sums and close_sums of o
  //   v [components, v_stride]: a row holds one component of all keys; keys is rounded up to a multiple of
  //   key_alignment: weights are 0 there and v finite
  void (*weighted_sum)(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t v_stride, std::int64_t keys,
                       std::int64_t components, float* o);

  // g[j][c] += sum_i w[j][i] x[i][c]
  //   w [keys, kGroup]; keys is rounded up to a multiple of 16, and one row more is read: zeros there, and room in g
  //   x_pairs: pairs from kGroup/2 on are zeros (a tile of AMX has twice as many as a group); stride a multiple of 16
  //   g [keys, stride]
  void (*outer_products)(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride, std::int64_t keys,
                         float* g);
};

// begin() and end() of a task; null: fp32, nothing to do.
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

// The fastest this processor has: AMX's, those of AVX-512's BF16 part, or the plain ones, which are slow.
const Bf16Tiles& bf16_tiles();

}  // namespace etc::sparse
