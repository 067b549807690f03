// The products and roundings of bf16 attention: the processor's instructions must give the same bits as their
// definitions, which are the plain tiles for AMX and a loop in this file for AVX-512.
#include <algorithm>
#include <cmath>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/integers.h"
#include "sparse/cpu/bf16_interleave.h"
#include "sparse/cpu/bf16_tiles.h"
#include "tests/sparse/emulated_amx.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using sparse::Bf16Tiles;
using sparse::kGroup;
using sparse::kTilePairs;
using sparse::kTileRows16;

namespace {

using Halves = std::vector<std::uint16_t>;

std::size_t places(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// `rows` rows of `size` numbers, rounded into rows of `stride`; missing rows are zero.
Halves rounded_rows(const Bf16Tiles& tiles, std::int64_t rows, std::int64_t room, std::int64_t size,
                    std::int64_t stride) {
  const std::vector<float> values = test::random_floats(rows * size, 5);
  Halves result(places(room * stride));
  for (std::int64_t r = 0; r < rows; ++r) {
    tiles.round_row(values.data() + r * size, size, stride, result.data() + r * stride);
  }
  return result;
}

// kGroup columns of `size` numbers as pairs of adjacent rows [stride/2, kGroup, 2].
Halves rounded_pairs(const Bf16Tiles& tiles, std::int64_t size, std::int64_t stride) {
  const std::vector<float> values = test::random_floats(size * kGroup, 6);
  Halves result(places(stride * kGroup));
  for (std::int64_t r = 0; r < stride; r += 2) {
    const float* first = r < size ? values.data() + r * kGroup : nullptr;
    const float* second = r + 1 < size ? values.data() + (r + 1) * kGroup : nullptr;
    tiles.round_pairs(first, second, kGroup, kGroup, result.data() + r * kGroup);
  }
  return result;
}

// [keys, kGroup] = keys [keys, D] by queries [D, kGroup]
std::vector<float> dots(const Bf16Tiles& tiles, std::int64_t keys, std::int64_t head_size) {
  const std::int64_t stride = round_up(head_size, kTilePairs), room = round_up(keys, kTileRows16);
  const Halves k = rounded_rows(tiles, keys, room, head_size, stride), q = rounded_pairs(tiles, head_size, stride);
  std::vector<float> s(places(room * kGroup));
  tiles.begin();
  tiles.dot_products(q.data(), k.data(), stride, keys, s.data());
  tiles.end();
  s.resize(places(keys * kGroup));
  return s;
}

// Values [D, keys] in steps: [steps, components, kTilePairs].
Halves value_columns(const Bf16Tiles& tiles, std::int64_t head_size, std::int64_t components, std::int64_t keys) {
  const std::int64_t stride = round_up(keys, kTilePairs), row = kTilePairs;
  const Halves rows = rounded_rows(tiles, head_size, components, keys, stride);
  Halves columns(rows.size());
  for (std::int64_t n = 0; n < components * stride / row; ++n) {  // component n / steps, step n % steps
    const std::int64_t to = n % (stride / row) * components + n / (stride / row);
    std::copy_n(rows.begin() + n * row, row, columns.begin() + to * row);
  }
  return columns;
}

// [D, kGroup] of ones += values [D, keys] by weights [keys, kGroup]
std::vector<float> sums(const Bf16Tiles& tiles, std::int64_t keys, std::int64_t head_size) {
  const std::int64_t components = round_up(head_size, kTileRows16);
  const Halves v = value_columns(tiles, head_size, components, keys),
               w = rounded_pairs(tiles, keys, round_up(keys, kTilePairs));
  std::vector<float> o(places(components * kGroup), 1.0f);
  tiles.begin();
  tiles.open_sums(components, o.data());
  for (std::int64_t j = 0; j < keys; j += kTilePairs) {
    tiles.weighted_sum(w.data() + j * kGroup, v.data() + j * components, std::min(kTilePairs, keys - j), components,
                       o.data());
  }
  tiles.close_sums(components, o.data());
  tiles.end();
  return o;
}

// [keys, D] of ones += weights [keys, 32] by queries [32, D]; keys in whole tiles
std::vector<float> outers(const Bf16Tiles& tiles, std::int64_t keys, std::int64_t head_size) {
  const std::int64_t stride = round_up(head_size, kTileRows16), room = round_up(keys, kTileRows16);
  const std::vector<float> x = test::random_floats(kTilePairs * head_size, 7);
  Halves w = rounded_rows(tiles, keys, room, kTilePairs, kTilePairs);
  Halves x_pairs(places(kTileRows16 * 2 * stride));
  for (std::int64_t i = 0; i < kTilePairs; i += 2) {
    const float* first = x.data() + i * head_size;
    tiles.round_pairs(first, first + head_size, head_size, stride, x_pairs.data() + i * stride);
  }
  // The last tile is not touched.
  const std::int64_t rows = room + kTileRows16;
  w.resize(places(rows * kTilePairs), 0x3F80);  // ones
  std::vector<float> g(places(rows * stride), 1.0f);
  std::vector<std::uint8_t> touched(places(rows / kTileRows16), 1);
  touched.back() = 0;
  tiles.begin();
  tiles.outer_products(w.data(), x_pairs.data(), stride, touched.data(), rows / kTileRows16, g.data());
  tiles.end();
  CHECK(std::all_of(g.end() - kTileRows16 * stride, g.end(), [](float sum) { return sum == 1.0f; }));
  g.resize(places(keys * stride));
  return g;
}

// sum + a·b in the order of AVX-512's VDPBF16PS: pair by pair, odd product first.   a [2·pairs], b [pairs, kGroup, 2]
float in_order(float sum, const std::uint16_t* a, const std::uint16_t* b, std::int64_t pairs,
               std::int64_t row = 2 * kGroup) {
  for (std::int64_t p = 0; p < pairs; ++p) {
    for (const std::int64_t half : {1, 0}) {
      sum = std::fma(float_from_bf16(a[2 * p + half]), float_from_bf16(b[p * row + half]), sum);
    }
  }
  return sum;
}

void dots_in_order(const std::uint16_t* q_pairs, const std::uint16_t* k, std::int64_t stride, std::int64_t keys,
                   float* s) {
  for (std::int64_t n = 0; n < keys * kGroup; ++n) {
    s[n] = in_order(0.0f, k + n / kGroup * stride, q_pairs + n % kGroup * 2, stride / 2);
  }
}

void sums_in_order(const std::uint16_t* w_pairs, const std::uint16_t* v, std::int64_t keys, std::int64_t components,
                   float* o) {
  for (std::int64_t n = 0; n < components * kGroup; ++n) {
    o[n] = in_order(o[n], v + n / kGroup * kTilePairs, w_pairs + n % kGroup * 2, (keys + 1) / 2);
  }
}

void outers_in_order(const std::uint16_t* w, const std::uint16_t* x_pairs, std::int64_t stride,
                     const std::uint8_t* touched, std::int64_t tiles, float* g) {
  for (std::int64_t n = 0; n < tiles * kTileRows16 * stride; ++n) {
    if (touched[n / stride / kTileRows16] == 0) continue;
    g[n] = in_order(g[n], w + n / stride * kTilePairs, x_pairs + n % stride * 2, kTilePairs / 2, 2 * stride);
  }
}

// The definition for the implementation that bf16_tiles() selects on this processor.
Bf16Tiles definition() {
  Bf16Tiles tiles = sparse::plain_bf16_tiles();
  if (cpu_has_amx(ComputeType::bf16)) return tiles;
  tiles.dot_products = dots_in_order;
  tiles.weighted_sum = sums_in_order;
  tiles.outer_products = outers_in_order;
  return tiles;
}

}  // namespace

TEST_CASE("the plain tiles multiply", "[sparse]") {
  const Bf16Tiles& plain = sparse::plain_bf16_tiles();
  const Halves q = rounded_pairs(plain, 40, 64), k = rounded_rows(plain, 3, 16, 40, 64);
  const std::vector<float> s = dots(plain, 3, 40);
  const auto value = [](std::uint16_t half) { return static_cast<double>(float_from_bf16(half)); };
  std::vector<double> expected(s.size());
  for (std::int64_t j = 0; j < 3; ++j) {
    for (std::int64_t i = 0; i < kGroup; ++i) {
      for (std::int64_t d = 0; d < 64; ++d) {
        expected[places(j * kGroup + i)] +=
            value(k[places(j * 64 + d)]) * value(q[places((d / 2 * kGroup + i) * 2 + d % 2)]);
      }
    }
  }
  // 40 products below 1, each added with a relative rounding of 2^-24.
  CHECK(test::near_all("dots", s, expected, 40 * 40 * 0x1p-24));

  const std::vector<float> w = test::random_floats(3 * kTilePairs, 5), x = test::random_floats(kTilePairs * 40, 7);
  const auto rounded = [&](float number) { return value(bf16_from_float(number)); };
  std::vector<double> products(places(3 * 48), 1.0);
  for (std::int64_t n = 0; n < 3 * kTilePairs * 40; ++n) {
    const std::int64_t j = n / (kTilePairs * 40), i = n / 40 % kTilePairs, c = n % 40;
    products[places(j * 48 + c)] += rounded(w[places(j * kTilePairs + i)]) * rounded(x[places(i * 40 + c)]);
  }
  CHECK(test::near_all("outer products", outers(plain, 3, 40), products, kTilePairs * kTilePairs * 0x1p-24));
}

// Compares all products and roundings of two implementations bit by bit.
void check_same_bits(const Bf16Tiles& fast, const Bf16Tiles& plain) {
  for (const std::int64_t head_size : {1, 10, 32, 64, 80, 128, 150, 300}) {
    for (const std::int64_t keys : {1, 16, 17, 33, 64, 70}) {
      CAPTURE(head_size, keys);
      CHECK(rounded_rows(fast, keys, keys, head_size, round_up(head_size, kTilePairs)) ==
            rounded_rows(plain, keys, keys, head_size, round_up(head_size, kTilePairs)));
      CHECK(test::same_bits(dots(fast, keys, head_size), dots(plain, keys, head_size)));
      CHECK(test::same_bits(sums(fast, keys, head_size), sums(plain, keys, head_size)));
      CHECK(test::same_bits(outers(fast, keys, head_size), outers(plain, keys, head_size)));
    }
  }
}

// A group's sums over two steps, with dot products in between: [D, kGroup].
std::vector<float> interrupted_sums(const Bf16Tiles& tiles, std::int64_t head_size) {
  const std::int64_t components = round_up(head_size, kTileRows16), keys = kTilePairs, stride = 2 * keys;
  const std::int64_t row_stride = round_up(head_size, kTilePairs);
  const Halves v = value_columns(tiles, head_size, components, stride), w = rounded_pairs(tiles, stride, stride);
  const Halves k = rounded_rows(tiles, keys, keys, head_size, row_stride),
               q = rounded_pairs(tiles, head_size, row_stride);
  std::vector<float> o(places(components * kGroup), 1.0f), s(places(keys * kGroup));
  const std::vector<float> expected_dots = dots(tiles, keys, head_size);
  tiles.begin();
  tiles.open_sums(components, o.data());
  for (std::int64_t j = 0; j < stride; j += keys) {
    tiles.begin_dots(q.data(), k.data(), row_stride, keys, s.data());
    tiles.weighted_sum(w.data() + j * kGroup, v.data() + j * components, keys, components, o.data());
    tiles.end_dots(keys, s.data());
    CHECK(test::same_bits(s, expected_dots));
    tiles.dot_products(q.data(), k.data(), row_stride, keys, s.data());
  }
  tiles.close_sums(components, o.data());
  tiles.end();
  return o;
}

#ifdef ETC_INTERLEAVES_TILES
// The dot products [32, kGroup] and then the sums [64, kGroup] of one step of heads of 64, one product after the other
// or as interleave(operands) issues them.
template <typename Interleave>
std::vector<float> step_of(const Bf16Tiles& tiles, const Interleave& interleave) {
  constexpr std::int64_t kSize = sparse::kInterleavedSize, kKeys = kTilePairs;
  const Halves q = rounded_pairs(tiles, kSize, kSize), k = rounded_rows(tiles, kKeys, kKeys, kSize, kSize);
  const Halves w = rounded_pairs(tiles, kKeys, kKeys), v = rounded_rows(tiles, kSize, kSize, kKeys, kKeys);
  std::vector<float> s(places(kKeys * kGroup)), o(places(kSize * kGroup), 1.0f);
  tiles.begin();
  tiles.open_sums(kSize, o.data());
  interleave(sparse::InterleavedOperands{q.data(), k.data(), s.data(), w.data(), v.data()});
  tiles.close_sums(kSize, o.data());
  tiles.end();
  s.insert(s.end(), o.begin(), o.end());
  return s;
}

// However many parts are issued before the rest.
template <typename Interleave>
void check_interleaving(const Bf16Tiles& tiles, const Interleave& interleave) {
  const auto called = [&](const sparse::InterleavedOperands& of) {
    tiles.dot_products(of.q_pairs, of.k, sparse::kInterleavedSize, kTilePairs, of.s);
    tiles.weighted_sum(of.w_pairs, of.v, kTilePairs, sparse::kInterleavedSize, nullptr);
  };
  const std::vector<float> expected = step_of(tiles, called);
  for (int parts = 0; parts <= 11; ++parts) {
    CAPTURE(parts);
    CHECK(test::same_bits(step_of(tiles, [&](const sparse::InterleavedOperands& of) { interleave(of, parts); }),
                          expected));
  }
  CHECK(expected[0] != 0.0f);
  CHECK(expected.back() != 1.0f);
}

TEST_CASE("products interleaved with vector work have the bits of products called one by one, on emulated tiles",
          "[sparse]") {
  check_interleaving(test::emulated_amx_tiles(), test::interleave_on_emulated_tiles);
}

TEST_CASE("products interleaved with vector work have the bits of products called one by one", "[sparse]") {
  if (!sparse::bf16_tiles().interleaves) {
    WARN("skipped: this processor has no AMX");
    return;
  }
  check_interleaving(sparse::bf16_tiles(), [](const sparse::InterleavedOperands& of, int parts) {
    sparse::InterleavedProducts products(of);
    for (int part = 0; part < parts; ++part) products.issue();
    products.finish();
  });
}
#endif

TEST_CASE("dot products leave a group's open sums as they are", "[sparse]") {
  std::vector<const Bf16Tiles*> all = {&sparse::plain_bf16_tiles(), &sparse::bf16_tiles()};
#if defined(__x86_64__)
  all.push_back(&test::emulated_amx_tiles());
#endif
  for (const Bf16Tiles* tiles : all) {
    for (const std::int64_t head_size : {1, 32, 48, 64, 80, 128}) {
      CAPTURE(head_size, tiles->key_alignment);
      const std::vector<float> expected = sums(*tiles, 2 * kTilePairs, head_size);
      CHECK(test::same_bits(interrupted_sums(*tiles, head_size), expected));
      CHECK(expected[0] != 1.0f);
    }
  }
}

TEST_CASE("the processor's bf16 products have the bits of their definition", "[sparse]") {
  const Bf16Tiles& fast = sparse::bf16_tiles();
  if (&fast == &sparse::plain_bf16_tiles()) {
    WARN("skipped: this processor has no bf16 products");
    return;
  }
  check_same_bits(fast, definition());
}

#if defined(__x86_64__)
TEST_CASE("the AMX kernels on emulated tile registers have the bits of the plain tiles", "[sparse]") {
  check_same_bits(test::emulated_amx_tiles(), sparse::plain_bf16_tiles());
}
#endif
