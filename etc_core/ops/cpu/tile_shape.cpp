// Trials of the library: does a smaller or larger tile give the same bits? Random numbers are enough: two orders of
// summation agree on a few thousand sums of hundreds of random products only if they are the same order.
#include "etc_core/ops/cpu/tile_shape.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/panels.h"
#include "etc_core/ops/cpu/tile_product.h"
#include "etc_core/ops/cpu/weight_gradient.h"

namespace etc::ops::cpu {

namespace {

constexpr std::int64_t kHeightStep = 16;  // rows

// Numbers in (-1, 1) whose sums round.
std::vector<float> numbers(std::int64_t count, std::uint32_t state) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& x : values) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

// Whether the first `elements` have the same bits; memcmp, because == would take -0 for 0.
template <typename T>
bool same_rows(const std::vector<T>& low, const std::vector<T>& whole, std::int64_t elements) {
  return std::memcmp(low.data(), whole.data(), static_cast<std::size_t>(elements) * sizeof(T)) == 0;
}

// Whether rows have the same bits in tiles of all heights.
bool low_tiles_keep_bits(std::int64_t n, std::int64_t k) {
  const auto x = numbers(kTileRows * k, 1), w = numbers(k * n, 2), before = numbers(kTileRows * n, 3);
  for (const bool add : {false, true}) {
    auto whole = before;  // [64, n]
    const auto multiply = [&](std::int64_t rows, std::vector<float>& y) {
      tile_product({.m = rows, .n = n, .k = k, .a = {x.data(), k}, .b = {w.data(), n}, .y = {y.data(), n}, .add = add});
    };
    multiply(kTileRows, whole);
    for (std::int64_t height = kHeightStep; height < kTileRows; height += kHeightStep) {
      auto low = before;  // [64, n], the first `height` rows computed
      multiply(height, low);
      if (!same_rows(low, whole, height * n)) return false;
    }
  }
  return true;
}

std::int64_t whole_steps(std::int64_t rows) {
  return round_up(rows, kHeightStep);
}

// Largest first: the larger the tile, the less often the library packs its operands (tile_shape.h).
constexpr GradientTile kGradientTiles[] = {{768, 768}, {384, 768}, {384, 384}, {384, 192}, {192, 192}};

// The first of these of which there are so many, or the last.
GradientTile largest_tile(std::int64_t p, std::int64_t q, std::int64_t tasks) {
  const auto enough = [&](GradientTile tile) { return ceil_div(p, tile.high) * ceil_div(q, tile.wide) >= tasks; };
  const auto found = std::find_if(std::begin(kGradientTiles), std::end(kGradientTiles), enough);
  return found != std::end(kGradientTiles) ? *found : *std::prev(found);
}

// What decides about the library's kernels for dw [p, q], besides the tile.
struct GradientShape {
  std::int64_t p, q, a_stride, b_stride;
  auto operator<=>(const GradientShape&) const = default;
};

using Extent = std::pair<std::int64_t, std::int64_t>;  // rows, columns

// All tiles that some of the shapes cut dw into: whole ones, and what is left at its ends.
std::set<Extent> extents_of(const GradientShape& of) {
  std::set<Extent> extents;
  for (const GradientTile& tile : kGradientTiles) {
    for (const std::int64_t high : {std::min(tile.high, of.p), of.p % tile.high}) {
      for (const std::int64_t wide : {std::min(tile.wide, of.q), of.q % tile.wide}) {
        if (high > 0 && wide > 0) extents.emplace(high, wide);
      }
    }
  }
  return extents;
}

// Whether sums over a block of tokens have the same bits in all these tiles: each of them lies in the last corner of
// the largest. Milliseconds for p and q of some thousands; nothing where there is only one.
bool gradient_tiles_keep_bits(const GradientShape& of) {
  const std::set<Extent> extents = extents_of(of);
  if (extents.size() == 1) return true;
  const Extent largest(std::min(kGradientTiles[0].high, of.p), std::min(kGradientTiles[0].wide, of.q));
  const auto values = numbers(kTokenBlock * std::max(of.a_stride, of.b_stride), 1);  // a and b: the same will do
  std::vector<float> whole(static_cast<std::size_t>(largest.first * of.q)), dw(whole.size());  // [high, q] each
  const auto sum = [&](const Extent& tile, std::vector<float>& to) {
    const std::int64_t i = largest.first - tile.first, j = largest.second - tile.second;
    for (std::int64_t row = i; row < largest.first; ++row) {  // what was there
      std::copy_n(values.data() + row * kTileRows + j, tile.second, to.data() + row * of.q + j);
    }
    tile_product({.m = tile.first,
                  .n = tile.second,
                  .k = kTokenBlock,
                  .a = {values.data() + i, of.a_stride},
                  .b = {values.data() + j, of.b_stride},
                  .y = {to.data() + i * of.q + j, of.q},
                  .transpose_a = Transpose::yes,
                  .add = true});
  };
  sum(largest, whole);
  const auto same = [&](const Extent& tile) {
    sum(tile, dw);
    bool equal = true;
    for (std::int64_t row = largest.first - tile.first; row < largest.first; ++row) {
      const std::int64_t at = row * of.q + largest.second - tile.second;
      const auto bytes = static_cast<std::size_t>(tile.second) * sizeof(float);
      equal = equal && std::memcmp(dw.data() + at, whole.data() + at, bytes) == 0;
    }
    return equal;
  };
  return std::all_of(extents.begin(), extents.end(), same);
}

// What try_it() found, now or before, for this key.
template <typename Key, typename Try>
bool once_for(const Key& key, const Try& try_it) {
  static std::mutex mutex;
  static std::map<Key, bool> known;
  const std::lock_guard lock(mutex);
  auto place = known.find(key);
  if (place == known.end()) place = known.emplace(key, try_it()).first;
  return place->second;
}

// `height` where low tiles serve for this key, else kTileRows.
template <typename Key, typename Try>
std::int64_t height_or_whole(std::int64_t height, const Key& key, const Try& try_shape) {
  return height == kTileRows || once_for(key, try_shape) ? height : kTileRows;
}

}  // namespace

GradientTile gradient_tile_of_part(std::int64_t p, std::int64_t q) {
  constexpr std::int64_t kEnoughTasks = 16;  // for any machine: the tile must not depend on this one's threads
  return largest_tile(p, q, kEnoughTasks);
}

GradientTile gradient_tile(const WeightGradient& g) {
  const GradientShape shape{g.p, g.q, g.a_stride, g.b_stride};
  if (!once_for(shape, [&] { return gradient_tiles_keep_bits(shape); })) return gradient_tile_of_part(g.p, g.q);
  const std::int64_t threads = thread_count();
  // Bits are the same in all tiles, so the number of threads may decide: two tasks each, to even out their ends.
  return largest_tile(g.p, g.q, threads == 1 ? 1 : 2 * threads);
}

std::int64_t tile_height(std::int64_t rows, std::int64_t n, std::int64_t k) {
  return height_or_whole(whole_steps(rows), std::pair(n, k), [&] { return low_tiles_keep_bits(n, k); });
}

}  // namespace etc::ops::cpu
