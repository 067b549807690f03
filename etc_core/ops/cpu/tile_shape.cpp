#include "etc_core/ops/cpu/tile_shape.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/panels.h"
#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/cpu/tile_product.h"
#include "etc_core/ops/cpu/weight_gradient.h"

namespace etc::ops::cpu {

namespace {

constexpr std::int64_t kStep = 16;

// Numbers in (-1, 1) whose sums round.
std::vector<float> numbers(std::int64_t count, std::uint32_t state) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& x : values) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

template <typename T>
bool same_rows(const std::vector<T>& low, const std::vector<T>& whole, std::int64_t elements) {
  return std::memcmp(low.data(), whole.data(), static_cast<std::size_t>(elements) * sizeof(T)) == 0;
}

// Whether rows have the same bits in tiles of all heights.
bool low_tiles_keep_bits(std::int64_t n, std::int64_t k) {
  const auto x = numbers(kTileRows * k, 1), w = numbers(k * n, 2), before = numbers(kTileRows * n, 3);
  for (const bool add : {false, true}) {
    auto whole = before;
    tile_product(Transpose::no, kTileRows, n, k, x.data(), k, w.data(), n, add, whole.data(), n);
    for (std::int64_t height = kStep; height < kTileRows; height += kStep) {
      auto low = before;
      tile_product(Transpose::no, height, n, k, x.data(), k, w.data(), n, add, low.data(), n);
      if (!same_rows(low, whole, height * n)) return false;
    }
  }
  return true;
}

// Operands as bytes: bf16 numbers are the upper halves of floats; any bytes do for int8, whose sums are exact.
std::vector<std::uint16_t> reduced_numbers(std::int64_t count, std::uint32_t state) {
  std::vector<std::uint16_t> values;
  for (const float x : numbers(count, state)) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    values.push_back(static_cast<std::uint16_t>(bits >> 16));
  }
  return values;
}

bool low_tiles_keep_bits(ComputeType compute, std::int64_t n, std::int64_t k) {
  const ReducedProduct product(compute, kTileRows, n, k);
  const auto x = reduced_numbers(kTileRows * product.row_bytes() / 2, 1), w = reduced_numbers(k * n, 2);
  std::vector<std::byte> packed(static_cast<std::size_t>(product.packed_bytes()));
  product.pack(w.data(), packed.data());
  const auto run = [&](const ReducedProduct& with, std::int64_t col) {
    std::vector<std::byte> scratch(static_cast<std::size_t>(with.scratch_bytes()));
    std::vector<std::uint32_t> y(static_cast<std::size_t>(kTileRows * n));
    const ReducedUse use(with);
    with.run(x.data(), packed.data(), col, scratch.data(), y.data());
    return y;
  };
  for (std::int64_t height = kStep; height < kTileRows; height += kStep) {
    const ReducedProduct low(compute, height, n, k);
    if (!low.packs_like(product) || low.scratch_bytes() > product.scratch_bytes()) return false;
    for (std::int64_t col = 0; col < n; col += product.group_cols()) {
      const std::int64_t cols = std::min(product.group_cols(), n - col);
      if (!same_rows(run(low, col), run(product, col), height * cols)) return false;
    }
  }
  return true;
}

// `height` where try_shape() found, now or before, that low tiles serve for this key, else kTileRows.
template <typename Key, typename Try>
std::int64_t height_or_whole(std::int64_t height, const Key& key, const Try& try_shape) {
  if (height == kTileRows) return height;
  static std::mutex mutex;
  static std::map<Key, bool> known;
  const std::lock_guard lock(mutex);
  auto place = known.find(key);
  if (place == known.end()) place = known.emplace(key, try_shape()).first;
  return place->second ? height : kTileRows;
}

std::int64_t whole_steps(std::int64_t rows) {
  return (rows + kStep - 1) / kStep * kStep;
}

constexpr GradientTile kGradientTiles[] = {{768, 768}, {384, 768}, {384, 384}, {384, 192}, {192, 192}};

// The first of these of which there are so many, or the last.
GradientTile largest_tile(std::int64_t p, std::int64_t q, std::int64_t tasks) {
  const auto enough = [&](GradientTile tile) { return blocks(p, tile.high) * blocks(q, tile.wide) >= tasks; };
  const auto found = std::find_if(std::begin(kGradientTiles), std::end(kGradientTiles), enough);
  return found != std::end(kGradientTiles) ? *found : *std::prev(found);
}

// Whether sums over a block of tokens have the same bits in tiles of all these shapes, and in what is left of them at
// the ends of a matrix.
bool gradient_tiles_keep_bits() {
  constexpr std::int64_t high = 1000, wide = 1000;
  const auto a = numbers(kTokenBlock * high, 1), b = numbers(kTokenBlock * wide, 2), before = numbers(high * wide, 3);
  const auto sums_in = [&](GradientTile tile) {
    auto dw = before;
    for (std::int64_t i = 0; i < high; i += tile.high) {
      for (std::int64_t j = 0; j < wide; j += tile.wide) {
        tile_product(Transpose::yes, std::min(tile.high, high - i), std::min(tile.wide, wide - j), kTokenBlock,
                     a.data() + i, high, b.data() + j, wide, /*add=*/true, dw.data() + i * wide + j, wide);
      }
    }
    return dw;
  };
  const auto whole = sums_in(kGradientTiles[0]);
  return std::all_of(std::begin(kGradientTiles) + 1, std::end(kGradientTiles),
                     [&](GradientTile tile) { return same_rows(sums_in(tile), whole, high * wide); });
}

}  // namespace

GradientTile gradient_tile_of_part(std::int64_t p, std::int64_t q) {
  constexpr std::int64_t kEnoughTasks = 16;
  return largest_tile(p, q, kEnoughTasks);
}

GradientTile gradient_tile(std::int64_t p, std::int64_t q) {
  static const bool any = gradient_tiles_keep_bits();
  const std::int64_t threads = thread_count();
  return any ? largest_tile(p, q, threads == 1 ? 1 : 2 * threads) : gradient_tile_of_part(p, q);
}

std::int64_t tile_height(std::int64_t rows, std::int64_t n, std::int64_t k) {
  return height_or_whole(whole_steps(rows), std::pair(n, k), [&] { return low_tiles_keep_bits(n, k); });
}

std::int64_t reduced_tile_height(ComputeType compute, std::int64_t rows, std::int64_t n, std::int64_t k) {
  return height_or_whole(whole_steps(rows), std::tuple(compute, n, k),
                         [&] { return low_tiles_keep_bits(compute, n, k); });
}

}  // namespace etc::ops::cpu
