// The epilogue of a dense layer's tile: everything besides the product.
#pragma once

#include <cstdint>

#include "etc_core/ops/activation_kind.h"
#include "etc_core/ops/cpu/either_type.h"

namespace etc::ops::cpu {

// Converts sums of byte products to real numbers: undoes the shift of x by 128 and applies the scales of both operands.
//   (sums[r][c] - 128·column_sums[c]) · (row_scales[r]·column_scales[c])
struct ByteScales {
  const float* rows = nullptr;     // [rows]
  const float* columns = nullptr;  // [cols]
  const std::int32_t* column_sums = nullptr;
};

// Applied while a tile of products is in cache: z = product + bias, y (= or +=) act(z).
//   product, z, y [rows, cols] with their own row strides; bias [cols] or null; z absent, or in the type of y
//   if bytes.rows is set, product holds int32 sums of byte products
// In bf16, z and y are rounded as they are written, so y += rounds the sum once.
// y and z may be product itself (same stride), y may not be z unless the activation is linear.
struct TileEpilogue {
  std::int64_t rows = 0, cols = 0;
  const float* product = nullptr;
  std::int64_t product_stride = 0;
  ByteScales bytes;
  const float* bias = nullptr;
  Activation activation = Activation::linear;
  MutableNumbers z;
  std::int64_t z_stride = 0;
  bool add = false;  // y +=; product must then not be y itself
  MutableNumbers y;
  std::int64_t y_stride = 0;
};
void finish_tile(const TileEpilogue& tile);

// sums[c] += the sum over the rows of a[row, c] in fp32, on the calling thread.
void add_column_sums(std::int64_t rows, std::int64_t cols, const Numbers& a, std::int64_t stride, float* sums);

}  // namespace etc::ops::cpu
