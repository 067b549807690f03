// Products of bf16 or bytes by instructions that add the products within a word of 4 bytes: matrix tiles (AMX), or dot
// products of vectors (AVX-512's BF16 and VNNI parts). The instructions, and the order in which they want the weights.
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/next_rows.h"

namespace etc::ops::cpu {

inline constexpr std::int64_t kWordRowBytes = 64;  // 16 words, one of each column; or 16 words of a row of x
inline constexpr std::int64_t kWordRows = 16;      // of a block: 16 words of k
inline constexpr std::int64_t kWordCols = 16;      // of a block
inline constexpr std::int64_t kWordBlockBytes = kWordRows * kWordRowBytes;

// How a group of columns lies: blocks of 16 columns side by side, and the bytes from block to block and from word to
// word of 16 words of k. AMX loads whole blocks, AVX-512 a word of all blocks at a time.
struct WordLayout {
  std::int64_t blocks, block_bytes, word_bytes;
  constexpr std::int64_t cols() const { return blocks * kWordCols; }
};
inline constexpr WordLayout kAmxWords{2, kWordBlockBytes, kWordRowBytes};
inline constexpr WordLayout kAvx512Words{3, kWordRowBytes, 3 * kWordRowBytes};

// w [k, n], without gaps -> weights [n / cols rounded up][k / depth rounded up][a group's blocks of 16 words]
// A word of a column holds the 2 bf16 numbers, or 4 bytes, that follow one another in k; depth is 32 or 64 numbers.
// Beyond k and beyond n stand zeros, which add nothing to a sum.
void pack_words(const std::uint16_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint16_t* weights);
void pack_words(const std::uint8_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint8_t* weights);

// y [m, cols] = x·W for a group of the layout's columns or fewer, y row-major without gaps; x [m, steps·64 bytes], rows
// row_bytes apart; m a multiple of 16; weights as packed, of one group. A row's sums go through k in order.
//   …_bf16: bf16 -> fp32        …_int8: unsigned and signed bytes -> int32
struct WordProduct {
  std::int64_t m = 0, cols = 0;
  std::int64_t steps = 0;  // of 64 bytes of k
  const void* x = nullptr;
  std::int64_t row_bytes = 0;
  const void* weights = nullptr;
  void* y = nullptr;   // of numbers of 4 bytes
  NextRows next = {};  // avx512_… asks memory for them while it computes. Which lines they are changes no result.
};

// 32 rows by 32 columns in four tiles: every tile that is loaded serves two products. Between begin_amx() and
// end_amx(), around one thread's task: setting the tiles up takes as long as a tenth of a product. They nest. In
// between no library may use the tiles.
void begin_amx();
void end_amx();
void amx_bf16(const WordProduct& product);
void amx_int8(const WordProduct& product);

// 8 rows by 48 columns in 24 registers: three loads of weights and eight broadcasts serve 24 dot products, one a cycle.
void avx512_bf16(const WordProduct& product);
void avx512_int8(const WordProduct& product);

}  // namespace etc::ops::cpu
