#include "etc_core/base/integers.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "etc_core/base/arena.h"
#include "etc_core/base/bf16.h"
#include "etc_core/base/varint.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("ceil_div and round_up go to the next whole step and keep whole ones", "[base]") {
  static_assert(ceil_div(0, 8) == 0 && ceil_div(1, 8) == 1 && ceil_div(8, 8) == 1 && ceil_div(9, 8) == 2);
  static_assert(round_up(0, 8) == 0 && round_up(1, 8) == 8 && round_up(8, 8) == 8 && round_up(9, 8) == 16);
  static_assert(std::is_same_v<decltype(ceil_div(std::int64_t{1}, 2)), std::int64_t>);
  CHECK(round_up(std::size_t{17}, std::size_t{5}) == 20);
}

TEST_CASE("bf16 rounds to the nearest, ties to even, and keeps what is not a number", "[base]") {
  const auto rounded = [](float x) { return float_from_bf16(bf16_from_float(x)); };
  CHECK(rounded(1.0f + 0x1p-8f) == 1.0f);            // tie, down to even
  CHECK(rounded(1.0f + 0x3p-8f) == 1.0f + 0x1p-6f);  // tie, up to even
  CHECK(rounded(-3.4e38f) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
  CHECK(rounded(0x1p-133f) == 0x1p-133f);  // the smallest subnormal of bf16
}

TEST_CASE("an arena without a block counts what one with a block hands out", "[base]") {
  alignas(64) std::byte block[192];
  Arena<64> counted(nullptr), dealt(block);
  for (Arena<64>* arena : {&counted, &dealt}) {
    const auto* first = arena->take<float>(17);
    const auto* none = arena->take<float>(0);
    const auto* second = arena->take<std::uint16_t>(1);
    CHECK(arena->used() == 192);
    if (arena == &counted) continue;
    CHECK(reinterpret_cast<const std::byte*>(first) == block);
    CHECK(reinterpret_cast<const std::byte*>(none) == block + 128);
    CHECK(reinterpret_cast<const std::byte*>(second) == block + 128);
  }
  CHECK(counted.take<char>(1) == nullptr);
}

TEST_CASE("varints come back, and what is cut short or beyond 64 bits is none", "[base]") {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, ~std::uint64_t{0}}) {
    std::string bytes;
    append_varint(bytes, value);
    std::string_view rest = bytes;
    CHECK(take_varint(rest) == value);
    CHECK(rest.empty());
    rest = std::string_view(bytes).substr(0, bytes.size() - 1);
    CHECK_FALSE(take_varint(rest).has_value());
    CHECK(rest.size() == bytes.size() - 1);
  }
  const std::string beyond = std::string(9, '\xff') + '\x02';
  std::string_view rest = beyond;
  CHECK_FALSE(take_varint(rest).has_value());
}
