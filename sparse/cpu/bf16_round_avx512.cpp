// Rounding to bf16 with the AVX-512 instruction, two vectors of floats at a time. Subnormal numbers become 0.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "sparse/cpu/bf16_round.h"

namespace etc::sparse {

namespace {

// Numbers c … c+15 of a row of `size` numbers; zero beyond.
inline __m512 load(const float* row, std::int64_t c, std::int64_t size) {
  if (row == nullptr || c >= size) return _mm512_setzero_ps();
  if (c + 16 <= size) return _mm512_loadu_ps(row + c);
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << (size - c)) - 1), row + c);
}

}  // namespace

void round_row_avx512(const float* row, std::int64_t size, std::int64_t stride, std::uint16_t* to) {
  for (std::int64_t c = 0; c < stride; c += 32) {
    const __m512bh both = _mm512_cvtne2ps_pbh(load(row, c + 16, size), load(row, c, size));
    _mm512_storeu_si512(to + c, reinterpret_cast<__m512i>(both));
  }
}

void round_pairs_avx512(const float* first, const float* second, std::int64_t size, std::int64_t stride,
                        std::uint16_t* to) {
  // Permutation that interleaves the two halves: 0, 16, 1, 17, … (written from the highest index down).
  const __m512i alternating = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                                               6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  // 16 components of both rows at a time: one instruction rounds both, one interleaves them.
  for (std::int64_t c = 0; c < stride; c += 16) {
    const __m512bh both = _mm512_cvtne2ps_pbh(load(second, c, size), load(first, c, size));
    _mm512_storeu_si512(to + 2 * c, _mm512_permutexvar_epi16(alternating, reinterpret_cast<__m512i>(both)));
  }
}

}  // namespace etc::sparse

#endif  // __x86_64__
