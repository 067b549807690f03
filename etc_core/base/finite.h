// Search for numbers that are nan or infinite.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "etc_core/base/bf16.h"

namespace etc {

// All exponent bits set means nan or infinity.
inline bool is_finite(float number) {
  constexpr std::uint32_t kExponent = 0x7f800000u;
  return (std::bit_cast<std::uint32_t>(number) & kExponent) != kExponent;
}
inline bool is_finite(Bf16 number) {
  constexpr std::uint32_t kExponent = 0x7f80u;
  return (number.bits & kExponent) != kExponent;
}

// How many of the numbers are nan or infinite. Counting instead of stopping at the first lets the compiler vectorise the
// loop.
template <typename Number>
std::int64_t count_not_finite(const Number* numbers, std::int64_t count) {
  constexpr std::int64_t kBlock = 1 << 16;  // small enough for 32-bit counters, of which a vector holds more
  std::int64_t all = 0;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t end = std::min(count, first + kBlock);
    std::uint32_t in_block = 0;
    for (std::int64_t i = first; i < end; ++i) in_block += is_finite(numbers[i]) ? 0 : 1;
    all += in_block;
  }
  return all;
}

}  // namespace etc
