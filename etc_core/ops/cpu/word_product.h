// Micro-kernels for products of bf16 or bytes with instructions that add the products within a word of 4 bytes: matrix
// tiles (AMX), or dot products of vectors (AVX-512 BF16 and VNNI). Also the packing of weights in the order in which
// these instructions read them.
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/next_rows.h"
#include "etc_core/ops/cpu/panels.h"

namespace etc::ops::cpu {

inline constexpr std::int64_t kWordRowBytes = 64;  // 16 words, one per column; or 16 words of a row of x
inline constexpr std::int64_t kWordRows = 16;      // of a block: 16 words of k
inline constexpr std::int64_t kWordCols = 16;      // of a block
inline constexpr std::int64_t kWordBlockBytes = kWordRows * kWordRowBytes;
inline constexpr std::int64_t kSumBytes = 4;  // of a number of y

// Memory layout of a group of columns: the number of adjacent blocks of 16 columns, and the bytes from block to block
// and from word to word within 16 words of k. AMX loads whole blocks, AVX-512 one word of all blocks at a time. With
// three parts, all blocks of the group are followed by those of the second and the third part of the numbers.
struct WordLayout {
  std::int64_t blocks, block_bytes, word_bytes;
  int parts = 1;
  constexpr std::int64_t cols() const { return blocks * kWordCols; }
};
inline constexpr WordLayout kAmxWords{2, kWordBlockBytes, kWordRowBytes};
inline constexpr WordLayout kAmxParts{2, kWordBlockBytes, kWordRowBytes, 3};
inline constexpr WordLayout kAvx512Words{3, kWordRowBytes, 3 * kWordRowBytes};

// w [k, n], without gaps -> weights [n / cols rounded up][k / depth rounded up][a group's blocks of 16 words]
// A word of a column holds 2 bf16 numbers, or 4 bytes, that are consecutive in k; depth is 32 or 64 numbers. Positions
// beyond k and n are zero, which adds nothing to a sum.
void pack_words(const std::uint16_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint16_t* weights);
void pack_words(const std::uint8_t* w, std::int64_t k, std::int64_t n, const WordLayout& to, std::uint8_t* weights);

// The same for the columns of a block of fp32 weights, padded with rows of zeros to k, rounded to nearest even; or, with
// three parts, in bf16 parts whose sum is the weight (base/bf16-inl.h).
void round_to_words(const PanelBlock& block, std::int64_t k, const WordLayout& to, std::uint16_t* weights);

// y [m, cols] = x·W, or y += x·W, for a group of the layout's columns or fewer; x [m rounded up to 16, steps·64 bytes];
// packed weights of one group. A row is summed over k in order, with `add` starting at its y.
//   …_bf16: bf16 -> fp32        …_int8: unsigned and signed bytes -> int32
//   …_fp32: numbers in three bf16 parts -> fp32; x [m, 3, steps·64 bytes]
struct WordProduct {
  std::int64_t m = 0, cols = 0;
  std::int64_t steps = 0;  // of 64 bytes of k
  const void* x = nullptr;
  std::int64_t x_row_bytes = 0;  // from row to row
  const void* weights = nullptr;
  void* y = nullptr;
  std::int64_t y_row_bytes = 0;
  bool add = false;
  NextRows next = {};  // rows that avx512_… prefetches while it computes; they do not affect results
};

// 32 rows by 32 columns in four tiles: every loaded tile is used in two products. Call between begin_amx() and
// end_amx(), which enclose one thread's task, since configuring the tiles takes a tenth of the time of a product. Calls
// may be nested. No library may use the tiles in between.
void begin_amx();
void end_amx();
void amx_bf16(const WordProduct& product);
void amx_int8(const WordProduct& product);

// fp32 products from bf16 tiles. With x = x0 + x1 + x2 and w = w0 + w1 + w2 (base/bf16-inl.h)
//   x·w ≈ x2·w0 + x1·w0 + x1·w1 + x0·w1 + x0·w2 + x0·w0
// what is left out is at most 2^-24 |x·w|, which is what rounding one product to fp32 may change. The six products are
// exact in fp32, so only sums are rounded, as they are with multiply-adds. Numbers and parts below 2^-126 count as 0.
// (Henry, Tang, Heinecke 2019, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
// Computations": sums of three bf16 numbers.)
void amx_fp32(const WordProduct& product);

// 8 rows by 48 columns in 24 registers: three loads of weights and eight broadcasts feed 24 dot products, one per
// cycle.
void avx512_bf16(const WordProduct& product);
void avx512_int8(const WordProduct& product);

}  // namespace etc::ops::cpu
