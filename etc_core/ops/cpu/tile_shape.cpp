// Tests whether the library gives the same bits in a lower tile. Random numbers suffice: two orders of summation agree
// on a few thousand sums of hundreds of random products only if they are the same order.
#include "etc_core/ops/cpu/tile_shape.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "etc_core/base/integers.h"
#include "etc_core/ops/cpu/tile_product.h"

namespace etc::ops::cpu {

namespace {

constexpr std::int64_t kHeightStep = 16;  // rows

// Numbers in (-1, 1) whose sums are inexact, so that different orders of summation round differently.
std::vector<float> numbers(std::int64_t count, std::uint32_t state) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& x : values) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

// Whether a row has the same bits in tiles of every height.
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
      // memcmp, because == would take -0 for 0.
      if (std::memcmp(low.data(), whole.data(), static_cast<std::size_t>(height * n) * sizeof(float)) != 0)
        return false;
    }
  }
  return true;
}

// The cached result of low_tiles_keep_bits, computed once per shape and process.
bool low_tiles_serve(std::int64_t n, std::int64_t k) {
  static std::mutex mutex;
  static std::map<std::pair<std::int64_t, std::int64_t>, bool> known;
  const std::lock_guard lock(mutex);
  auto place = known.find({n, k});
  if (place == known.end()) place = known.emplace(std::pair(n, k), low_tiles_keep_bits(n, k)).first;
  return place->second;
}

}  // namespace

std::int64_t tile_height(std::int64_t rows, std::int64_t n, std::int64_t k) {
  const std::int64_t height = round_up(rows, kHeightStep);
  return height == kTileRows || low_tiles_serve(n, k) ? height : kTileRows;
}

}  // namespace etc::ops::cpu
