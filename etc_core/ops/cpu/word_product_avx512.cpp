// Dot products of vectors (word_product.h). This file contains nothing else, because it is compiled for processors with
// AVX-512.
//
//            k: a word                 48 columns                      48 columns
//   8 rows [ x: a broadcast each ]  ·  [ W: 3 vectors ]  +=   8 rows [ y: 3 registers each ]
#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "etc_core/ops/cpu/word_product.h"

namespace etc::ops::cpu {

namespace {

constexpr int kRows = 8;
constexpr int kVectors = static_cast<int>(kAvx512Words.blocks);
constexpr std::int64_t kCols = kAvx512Words.cols();
constexpr std::int64_t kTileRow = kVectors * kWordRowBytes;  // bytes of a row's 48 sums

// sum + the products within the words of x and w: of bytes, or of bf16.
template <bool kBytes>
inline __m512i add_products(__m512i sum, __m512i x, __m512i w) {
  if constexpr (kBytes) {
    return _mm512_dpbusd_epi32(sum, x, w);
  } else {
    return _mm512_castps_si512(
        _mm512_dpbf16_ps(_mm512_castsi512_ps(sum), reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w)));
  }
}

// 8 rows by 48 columns.   x [8, steps·64 bytes], y [8, 48], rows y_row bytes apart
// Pragmas unroll the loops over rows and vectors; otherwise GCC 12 does not keep the sums in registers.
template <bool kBytes>
inline void sum_tile(const WordProduct& p, const char* x, char* y, std::int64_t y_row) {
  __m512i sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = p.add ? _mm512_loadu_si512(y + r * y_row + v * kWordRowBytes) : _mm512_setzero_si512();
    }
  }
  const auto* weights = static_cast<const char*>(p.weights);
  for (std::int64_t word = 0; word < p.steps * kWordRows; ++word, x += sizeof(int), weights += kTileRow) {
    __m512i w[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) w[v] = _mm512_loadu_si512(weights + v * kWordRowBytes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int numbers;
      std::memcpy(&numbers, x + r * p.x_row_bytes, sizeof(numbers));
      const __m512i row = _mm512_set1_epi32(numbers);
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) sum[r][v] = add_products<kBytes>(sum[r][v], row, w[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(y + r * y_row + v * kWordRowBytes, sum[r][v]);
  }
}

// Prefetches 8 rows of `bytes` bytes for writing.
inline void ask_for_rows(const char* row, std::int64_t row_bytes, std::int64_t bytes) {
  for (int r = 0; r < kRows; ++r, row += row_bytes) {
    for (std::int64_t at = 0; at < bytes; at += kWordRowBytes) __builtin_prefetch(row + at, 1, 3);
  }
}

// All rows of y. Tiles that reach beyond y, because it has fewer than 48 columns or not a multiple of 8 rows, are stored in
// a buffer, from which the existing numbers are copied.
template <bool kBytes>
void multiply(const WordProduct& p) {
  const auto width = static_cast<std::size_t>(p.cols * kSumBytes);
  alignas(64) char tile[kRows * kTileRow];
  for (std::int64_t row = 0; row < p.m; row += kRows) {
    const char* x = static_cast<const char*>(p.x) + row * p.x_row_bytes;
    char* y = static_cast<char*>(p.y) + row * p.y_row_bytes;
    const std::int64_t rows = std::min<std::int64_t>(kRows, p.m - row);
    const bool whole = p.cols == kCols && rows == kRows;
    if (p.next.first != nullptr) {
      const char* next = static_cast<const char*>(p.next.first) + row * p.next.row_bytes;
      ask_for_rows(next, p.next.row_bytes, p.cols * p.next.number_bytes);
    }
    for (std::int64_t r = 0; p.add && !whole && r < rows; ++r) {
      std::memcpy(tile + r * kTileRow, y + r * p.y_row_bytes, width);
    }
    sum_tile<kBytes>(p, x, whole ? y : tile, whole ? p.y_row_bytes : kTileRow);
    for (std::int64_t r = 0; !whole && r < rows; ++r) {
      std::memcpy(y + r * p.y_row_bytes, tile + r * kTileRow, width);
    }
  }
}

}  // namespace

void avx512_bf16(const WordProduct& product) {
  multiply<false>(product);
}

void avx512_int8(const WordProduct& product) {
  multiply<true>(product);
}

}  // namespace etc::ops::cpu

#endif  // __x86_64__
