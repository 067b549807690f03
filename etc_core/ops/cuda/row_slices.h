// The product of dense layers, whose rows are tokens, as strictly as the process wants it (ops/determinism.h).
#pragma once

#include "etc_core/ops/cuda/product.h"

namespace etc::ops::cuda {

// multiply(); under strict as products of slices of kSliceRows rows, the last filled up with rows of zeros, each with
// sums that are not split. So all products of one layer are one call of the library, the same for any number of rows.
// p.a must not be transposed. Cost of strict: the last slice's empty rows and up to two copies of its full ones.
void multiply_rows(const Product& p);

inline constexpr std::int64_t kSliceRows = 1024;  // a compromise between filling a device and empty rows; not measured

}  // namespace etc::ops::cuda
