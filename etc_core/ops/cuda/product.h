// The one matrix product of the CUDA backend: cuBLASLt (product_cublas.cpp), or plain loops under the emulator
// (tests/support/simt). Everything else about dense layers is in linear_cuda.cpp.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/element_type.h"

namespace etc::ops::cuda {

// A row-major matrix on the device, rows `stride` numbers apart; or its transpose.
struct Factor {
  const void* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;  // stored [columns, rows]
};

// c (= or +=) a·b, with an epilogue in the same pass over c:
//   z = a·b + bias,   c = z | gelu(z)
//   a [rows, inner], b [inner, cols]   both fp32, or both bf16 (strides are then multiples of 8)
//   c [rows, cols], rows c_stride apart, fp32 or, if the factors are bf16, bf16 (cols and
//                                           c_stride are then multiples of 8)
//   bias [cols], null: none;   pre_activation [rows, cols] = z, null: not kept;   both of c's type
// With add, bias and gelu are not allowed; pre_activation only with gelu, and cols is then a multiple of 8.
// Sums are in fp32, rounded once where c is bf16. Same bits for equal calls on one device model and library; a row of c
// may depend on `rows`, since the library chooses the order of summation by the sizes (row_slices.h avoids that).
struct Product {
  std::int64_t rows = 0, cols = 0, inner = 0;
  ComputeType compute = ComputeType::fp32;  // of a and b: fp32 or bf16
  Factor a, b;
  void* c = nullptr;
  ElementType c_type = ElementType::fp32;
  std::int64_t c_stride = 0;
  bool add = false;
  const void* bias = nullptr;
  bool gelu = false;
  void* pre_activation = nullptr;
  bool whole_sums = false;  // each number of c is summed by one block, without split-k
};
void multiply(const Product& product);

// The library's workspace, allocated by its first product or by reserve_product_memory(); the size NVIDIA recommends
// for compute capability 9.
inline constexpr std::int64_t kProductWorkspace = 32 << 20;
void reserve_product_memory();

}  // namespace etc::ops::cuda
