// Conversion of fp32 or bf16 rows to the operands of bf16 and int8 products.
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/either_type.h"

namespace etc::ops::cpu {

// to[i] = x[i] rounded to bf16, to nearest even; NaN stays NaN. If x is bf16, a copy.
void round_to_bf16(const Numbers& x, std::int64_t size, Bf16* to);

// The same for a block of rows `stride` numbers apart, transposed: to [cols, padded] = xᵀ, zeros from `rows` on; padded
// >= rows is even.
void round_to_bf16_turned(const Numbers& x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                          std::int64_t padded, Bf16* to);

// Unsigned bytes around 128: to[i] = 128 + round(x[i] / scale), scale = max |x| / 127 (1 for a row of zeros). Returns
// the scale. A row with NaN or infinity gets a scale of NaN, which makes its results NaN.
float quantize_row(const Numbers& x, std::int64_t size, std::uint8_t* to);

}  // namespace etc::ops::cpu
