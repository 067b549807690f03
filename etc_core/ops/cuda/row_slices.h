// The product of dense layers, whose rows are tokens, with the determinism set for the process (ops/determinism.h).
#pragma once

#include "etc_core/ops/cuda/product.h"

namespace etc::ops::cuda {

// multiply(); under strict, one product per slice of kSliceRows rows, the last padded with zero rows, none with split
// sums. So all products of one layer are the same call of the library for any number of rows. p.a must not be
// transposed. Cost of strict: the padding rows of the last slice and up to two copies of its other rows.
void multiply_rows(const Product& p);

inline constexpr std::int64_t kSliceRows = 1024;  // a compromise between filling a device and empty rows; not measured

}  // namespace etc::ops::cuda
