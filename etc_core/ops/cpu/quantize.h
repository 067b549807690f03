// Rows of fp32 to the operands of reduced products.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

// to[i] = x[i] rounded to bf16, to nearest even; NaN stays NaN.
void round_to_bf16(const float* x, std::int64_t size, std::uint16_t* to);

// The same for a block of rows `stride` floats apart, turned: to [cols, padded] = xᵀ, zeros from `rows` on; padded >=
// rows is even.
void round_to_bf16_turned(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                          std::int64_t padded, std::uint16_t* to);

// Unsigned bytes around 128: to[i] = 128 + round(x[i] / scale), scale = max |x| / 127 (1 for a row of zeros). Returns
// the scale. A row with NaN or infinity has a scale of NaN, and so has its result.
float quantize_row(const float* x, std::int64_t size, std::uint8_t* to);

}  // namespace etc::ops::cpu
