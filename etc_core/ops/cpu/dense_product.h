// The description of one dense product for the CPU kernels, for any number type of the operands.
#pragma once

#include <cstdint>

#include "etc_core/ops/activation_kind.h"
#include "etc_core/ops/cpu/either_type.h"

namespace etc::ops::cpu {

// y [rows, n] (= or +=) act(x [rows, k]·W [k, n] + bias); W is passed separately. Products in fp32 have fp32 arrays
// only.
struct DenseProduct {
  std::int64_t rows, k, n;
  Numbers x;
  std::int64_t x_stride;
  bool add;  // y +=; bias and activation are then not allowed
  const float* bias;
  Activation activation;
  MutableNumbers z;  // the value before the activation, in the type of y; or absent
  std::int64_t z_stride;
  MutableNumbers y;
  std::int64_t y_stride;
};

}  // namespace etc::ops::cpu
