// Conversion of fp32 or bf16 rows to the operands of products of bf16, of bf16 parts of fp32 numbers, and of int8.
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/either_type.h"

namespace etc::ops::cpu {

// to[i] = x[i] rounded to bf16, to nearest even; NaN stays NaN. If x is bf16, a copy.
void round_to_bf16(const Numbers& x, std::int64_t size, Bf16* to);

// The three bf16 parts of x [size] (base/bf16-inl.h): to [3][depth], zeros from `size` on; depth >= size.
void split_in_bf16(const float* x, std::int64_t size, std::int64_t depth, Bf16* to);

// A transposed block of rows: to [cols, depth], or with three parts [cols, 3, depth]; rows of `to` are `distance` numbers
// apart, with zeros from `rows` to depth, an even number.
struct TurnedRows {
  std::int64_t rows, cols, depth, distance;
  Bf16* to;
};

// round_to_bf16 and split_in_bf16 for a block of rows `stride` numbers apart.
void round_to_bf16_turned(const Numbers& x, std::int64_t stride, const TurnedRows& turned);
void split_in_bf16_turned(const float* x, std::int64_t stride, const TurnedRows& turned);

// Unsigned bytes around 128: to[i] = 128 + round(x[i] / scale), scale = max |x| / 127 (1 for a row of zeros). Returns
// the scale. A row with NaN or infinity gets a scale of NaN, which makes its results NaN.
float quantize_row(const Numbers& x, std::int64_t size, std::uint8_t* to);

}  // namespace etc::ops::cpu
