// Weights rounded to bf16, or split in bf16 parts, directly in words.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/base/integers.h"
#include "etc_core/ops/cpu/word_product.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::ops::cpu;
using ops::WeightLayout;

namespace {

// The block's numbers, each converted alone, followed by rows of zeros up to k, and all packed.
template <typename Convert>
std::vector<std::uint16_t> converted_then_packed(const PanelBlock& b, std::int64_t k, const WordLayout& to,
                                                 std::size_t numbers, const Convert& convert) {
  std::vector<std::uint16_t> converted, packed(numbers, 0x5A5A);
  for (std::int64_t i = 0; i < b.k; ++i) {
    for (std::int64_t j = b.first_col; j < b.first_col + b.cols; ++j) {
      converted.push_back(convert(b.weight[b.layout == WeightLayout::out_in ? j * b.stride + i : i * b.stride + j]));
    }
  }
  converted.resize(static_cast<std::size_t>(k * b.cols));
  pack_words(converted.data(), k, b.cols, to, packed.data());
  return packed;
}

// The bits of the part: each of the first two rounds what is left of x to 8 significant bits.
std::uint16_t part_of(float x, int part) {
  std::uint32_t bits = 0;
  for (int i = 0;; ++i) {
    bits = std::bit_cast<std::uint32_t>(x) + (i < 2 ? 0x8000u : 0u);
    if (i == part) return static_cast<std::uint16_t>(bits >> 16);
    x -= std::bit_cast<float>(bits & 0xFFFF0000u);
  }
}

float number_of(std::uint16_t bf16) {
  return std::bit_cast<float>(std::uint32_t{bf16} << 16);
}

}  // namespace

TEST_CASE("weights rounded directly in words are those rounded first and packed afterwards", "[ops]") {
  for (const std::int64_t k : {1, 2, 31, 32, 33, 100, 192}) {
    for (const std::int64_t n : {1, 15, 16, 17, 48, 49, 192, 230}) {
      std::vector<float> w = test::random_floats(k * n, static_cast<std::uint64_t>(k + n));
      w[0] = std::numeric_limits<float>::quiet_NaN();
      w.back() = -std::numeric_limits<float>::infinity();
      for (const WordLayout& to : {kAmxWords, kAvx512Words}) {
        for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in}) {
          for (const std::int64_t first : {std::int64_t{0}, n / 3}) {
            CAPTURE(k, n, to.blocks, layout == WeightLayout::out_in, first);
            const PanelBlock block{w.data(), layout, k, ops::cpu::row_stride(layout, k, n), first, n - first};
            const std::int64_t groups = ceil_div(n - first, to.cols()), steps = ceil_div(k, 32);
            const auto numbers = static_cast<std::size_t>(groups * steps * to.cols() * 32);
            std::vector<std::uint16_t> packed(numbers, 0xA5A5);
            round_to_words(block, k, to, packed.data());
            CHECK(packed == converted_then_packed(block, k, to, numbers, [](float x) { return bf16_from_float(x); }));
          }
        }
      }
    }
  }
}

TEST_CASE("a number is the sum of its three bf16 parts, and the parts become smaller by 8 bits", "[ops]") {
  std::vector<float> numbers = test::random_floats(10000, 3);
  for (const float x : {0.0f, -0.0f, 1.0f, 0x1.fep0f, 0x1.ffp0f, 0x1.fffffep0f, 0x1.fffffep-100f, -0x1.fc0001p126f}) {
    numbers.push_back(x);
  }
  for (const float x : numbers) {
    CAPTURE(x);
    const float first = number_of(part_of(x, 0)), second = number_of(part_of(x, 1)), third = number_of(part_of(x, 2));
    CHECK(static_cast<double>(first) + static_cast<double>(second) + static_cast<double>(third) ==
          static_cast<double>(x));
    CHECK(std::abs(second) <= 0x1p-8f * std::abs(x));
    CHECK(std::abs(third) <= 0x1p-17f * std::abs(x));
  }
  for (const float x : {std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7F800001u),
                        std::bit_cast<float>(0xFFFFFFFFu), std::numeric_limits<float>::infinity()}) {
    float sum = 0;
    for (int part = 0; part < 3; ++part) sum += number_of(part_of(x, part));
    CHECK(!std::isfinite(sum));
  }
}

TEST_CASE("weights split directly in words are the parts of each number, packed one part after the other", "[ops]") {
  for (const std::int64_t k : {1, 2, 31, 32, 33, 100, 192}) {
    for (const std::int64_t n : {1, 15, 16, 17, 48, 49, 192, 230}) {
      std::vector<float> w = test::random_floats(k * n, static_cast<std::uint64_t>(k + n));
      w.back() = -std::numeric_limits<float>::infinity();
      for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in}) {
        const std::int64_t first_row = k / 4;
        CAPTURE(k, n, layout == WeightLayout::out_in);
        const PanelBlock all{w.data(), layout, k, ops::cpu::row_stride(layout, k, n), n / 3, n - n / 3};
        const PanelBlock block = rows_of(all, first_row, k - first_row);
        const std::int64_t groups = ceil_div(block.cols, kAmxParts.cols()), steps = ceil_div(k, 32);
        const std::int64_t of_part = steps * kAmxParts.cols() * 32;  // numbers of a group
        std::vector<std::uint16_t> packed(static_cast<std::size_t>(3 * groups * of_part), 0xA5A5);
        round_to_words(block, k, kAmxParts, packed.data());
        for (int part = 0; part < 3; ++part) {
          const auto expected = converted_then_packed(block, k, kAmxWords, static_cast<std::size_t>(groups * of_part),
                                                      [part](float x) { return part_of(x, part); });
          for (std::int64_t group = 0; group < groups; ++group) {
            const auto here = packed.begin() + (3 * group + part) * of_part;
            CHECK(std::equal(here, here + of_part, expected.begin() + group * of_part));
          }
        }
      }
    }
  }
}
