// bf16, the upper half of a float. Header-only and C++17, because host code of every backend uses it. Other places
// round many numbers at a time, with the same bits: in vectors (bf16-inl.h), with the conversion instruction of AVX-512
// BF16 (sparse/cpu/bf16_round_avx512.cpp, which flushes subnormal numbers to 0) and with nvcc's function
// (simt_device.h).
#pragma once

#include <cstdint>
#include <cstring>

namespace etc {

// One number of an array in bf16.
struct Bf16 {
  std::uint16_t bits;
};

// The bits of x rounded to bf16, to nearest even; NaN stays NaN.
inline std::uint16_t bf16_from_float(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  // A NaN may have its bits only in the part that is cut off; it would become infinity.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// The number whose bits are the lower half of `bits`; exact.
inline float float_from_bf16(std::uint32_t bits) {
  bits <<= 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace etc
