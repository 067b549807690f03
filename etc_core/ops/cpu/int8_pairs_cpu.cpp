// int8 products by widening to 16 bits (int8_pairs.h).
//
//   for each chunk of 512 numbers of k:            x [m, 512] widened once into scratch
//     for each strip of 16 columns:                W [512, 16] widened once into scratch
//       for each 4 rows, for each 2 vectors:       sums in registers, added to y from the second chunk on
//
// Widening costs one instruction per vector, once per chunk, whereas the widened operands are read m/4 times (W) and
// n/16 times (x).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/int8_pairs_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cstring>

#include "etc_core/base/integers.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/int8_pairs.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Pairs of numbers of k per chunk. A widened strip of weights then takes 16 KB of the first-level cache, four rows of x
// take 4 KB.
constexpr std::int64_t kChunkPairs = 256;

// Columns of a block of sums. A block has four rows by two vectors of columns: eight independent sums keep the
// multipliers busy, and every loaded vector of weights is used for four rows.
#if HWY_TARGET == HWY_SCALAR
using PairTag = hn::CappedTag<std::int16_t, 1>;

HWY_INLINE std::int64_t block_cols() {
  return kPairCols;
}

// Scalar version of the function below; compiled only, since the program does not run on processors without AVX2.
HWY_INLINE void sum_block(const std::int16_t* x, const std::int16_t* w, std::int64_t pairs, bool add, std::int32_t* y,
                          std::int64_t y_stride) {
  for (std::int64_t r = 0; r < kPairRows; ++r) {
    const std::int16_t* row = x + r * 2 * kChunkPairs;
    for (std::int64_t j = 0; j < kPairCols; ++j) {
      std::int32_t sum = add ? y[r * y_stride + j] : 0;
      for (std::int64_t c = 0; c < 2 * pairs; ++c) sum += row[c] * w[(c / 2 * kPairCols + j) * 2 + c % 2];
      y[r * y_stride + j] = sum;
    }
  }
}
#else
using SumTag = hn::CappedTag<std::int32_t, 8>;
using PairTag = hn::Repartition<std::int16_t, SumTag>;
using Sum = hn::Vec<SumTag>;
using Pair = hn::Vec<PairTag>;

HWY_INLINE std::int64_t block_cols() {
  return 2 * static_cast<std::int64_t>(hn::Lanes(SumTag()));
}

// The sums of one row and two vectors of columns. Some instruction sets keep a part of the sums in `more_…`.
struct RowSums {
  Sum left, right, more_left, more_right;

  HWY_INLINE void add(Pair x, Pair w_left, Pair w_right) {
    const SumTag d;
    left = hn::ReorderWidenMulAccumulate(d, x, w_left, left, more_left);
    right = hn::ReorderWidenMulAccumulate(d, x, w_right, right, more_right);
  }
  HWY_INLINE void store(bool add, std::int32_t* y) const {
    const SumTag d;
    const auto lanes = hn::Lanes(d);
    const Sum of_left = hn::RearrangeToOddPlusEven(left, more_left);
    const Sum of_right = hn::RearrangeToOddPlusEven(right, more_right);
    hn::StoreU(add ? hn::Add(of_left, hn::LoadU(d, y)) : of_left, d, y);
    hn::StoreU(add ? hn::Add(of_right, hn::LoadU(d, y + lanes)) : of_right, d, y + lanes);
  }
};

HWY_INLINE RowSums no_sums() {
  const Sum zero = hn::Zero(SumTag());
  return {zero, zero, zero, zero};
}

// Broadcasts a pair of adjacent numbers of a row of x to all lanes: in every column they multiply the same two rows of
// W.
HWY_INLINE Pair one_pair(const std::int16_t* x) {
  std::int32_t both;
  std::memcpy(&both, x, sizeof(both));
  return hn::BitCast(PairTag(), hn::Set(SumTag(), both));
}

// x [4, pairs, 2], rows kChunkPairs pairs apart;   w [pairs, 16, 2], from the block's first column on
HWY_INLINE void sum_block(const std::int16_t* x, const std::int16_t* w, std::int64_t pairs, bool add, std::int32_t* y,
                          std::int64_t y_stride) {
  const PairTag d;
  const auto numbers = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t kXRow = 2 * kChunkPairs;  // numbers from one row of x to the next
  RowSums row0 = no_sums(), row1 = no_sums(), row2 = no_sums(), row3 = no_sums();
#pragma GCC unroll 4  // instructions count where another thread shares the core: a tenth of the time
  for (std::int64_t p = 0; p < pairs; ++p) {
    const Pair left = hn::LoadU(d, w + p * 2 * kPairCols), right = hn::LoadU(d, w + p * 2 * kPairCols + numbers);
    row0.add(one_pair(x + 2 * p), left, right);
    row1.add(one_pair(x + kXRow + 2 * p), left, right);
    row2.add(one_pair(x + 2 * kXRow + 2 * p), left, right);
    row3.add(one_pair(x + 3 * kXRow + 2 * p), left, right);
  }
  row0.store(add, y);
  row1.store(add, y + y_stride);
  row2.store(add, y + 2 * y_stride);
  row3.store(add, y + 3 * y_stride);
}
#endif

// to[i] = from[i], from unsigned (x) or signed (W) bytes to 16 bits.
template <typename T>
HWY_INLINE void widen(const T* from, std::int64_t count, std::int16_t* to) {
  const PairTag d;
  const hn::Rebind<T, PairTag> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, from + i)), d, to + i);
  for (; i < count; ++i) to[i] = from[i];
}

// One strip of columns for all rows, over one chunk of k.   x [m, kChunkPairs, 2], w [pairs, 16, 2]
void sum_strip(const PairProduct& p, const std::int16_t* x, const std::int16_t* w, std::int64_t pairs, bool add,
               std::int64_t first_col) {
  const std::int64_t width = std::min(kPairCols, p.n - first_col);
  for (std::int64_t row = 0; row < p.m; row += kPairRows) {
    std::int32_t* y = p.y + row * p.n + first_col;
    // [4, 16] replaces y if the strip is narrower than 16 columns, because a block always computes 16.
    HWY_ALIGN std::int32_t part[kPairRows * kPairCols];
    const bool whole = width == kPairCols;
    for (std::int64_t r = 0; add && !whole && r < kPairRows; ++r) std::copy_n(y + r * p.n, width, part + r * kPairCols);
    for (std::int64_t col = 0; col < kPairCols; col += block_cols()) {
      sum_block(x + row * 2 * kChunkPairs, w + 2 * col, pairs, add, (whole ? y : part) + col, whole ? p.n : kPairCols);
    }
    for (std::int64_t r = 0; !whole && r < kPairRows; ++r) std::copy_n(part + r * kPairCols, width, y + r * p.n);
  }
}

void multiply(const PairProduct& p) {
  const std::int64_t all_pairs = ceil_div(p.k, 2);
  auto* x = reinterpret_cast<std::int16_t*>(p.scratch);  // [m, kChunkPairs, 2]
  auto* w = x + p.m * 2 * kChunkPairs;                   // [kChunkPairs, 16, 2]
  for (std::int64_t first = 0; first < all_pairs; first += kChunkPairs) {
    const std::int64_t pairs = std::min(kChunkPairs, all_pairs - first);
    const std::int64_t numbers = std::min(2 * pairs, p.k - 2 * first);
    for (std::int64_t row = 0; row < p.m; ++row) {
      std::int16_t* to = x + row * 2 * kChunkPairs;
      widen(p.x + row * p.row_bytes + 2 * first, numbers, to);
      if (numbers < 2 * pairs) to[numbers] = 0;  // for odd k, pads the last pair; its weight is 0, too
    }
    for (std::int64_t col = 0; col < p.n; col += kPairCols) {
      widen(p.weights + (col * all_pairs + first * kPairCols) * 2, pairs * kPairCols * 2, w);
      sum_strip(p, x, w, pairs, first > 0, col);
    }
  }
}

// Room for x [m, kChunkPairs, 2] and w [kChunkPairs, 16, 2].
std::int64_t scratch_bytes(std::int64_t m) {
  return (m + kPairCols) * 2 * kChunkPairs * static_cast<std::int64_t>(sizeof(std::int16_t));
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

void multiply_pairs(const PairProduct& product) {
  ETC_DISPATCH(multiply)(product);
}

std::int64_t pair_scratch_bytes(std::int64_t m) {
  return ETC_DISPATCH(scratch_bytes)(m);
}

std::int64_t pair_weight_bytes(std::int64_t k, std::int64_t n) {
  return round_up(n, kPairCols) * round_up(k, 2);
}

void pack_pairs(const std::int8_t* w, std::int64_t k, std::int64_t n, std::int8_t* weights) {
  for (std::int64_t col = 0; col < n; col += kPairCols) {
    const std::int64_t width = std::min(kPairCols, n - col);
    for (std::int64_t i = 0; i < k; i += 2, weights += 2 * kPairCols) {
      const std::int8_t *even = w + i * n + col, *odd = even + n;  // [width] rows i and i + 1; no row k if k is odd
      std::fill_n(weights, 2 * kPairCols, std::int8_t{0});
      for (std::int64_t j = 0; j < width; ++j) {
        weights[2 * j] = even[j];
        if (i + 1 < k) weights[2 * j + 1] = odd[j];
      }
    }
  }
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
