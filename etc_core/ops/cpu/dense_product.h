// One dense product as the CPU kernels see it, whatever number type its operands get.
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/either_type.h"
#include "etc_core/ops/linear.h"

namespace etc::ops::cpu {

// y [rows, n] (= or +=) act(x [rows, k]·W [k, n] + bias); W is named where it is multiplied. Products in fp32
// have arrays of fp32 only.
struct DenseProduct {
  std::int64_t rows, k, n;
  Numbers x;
  std::int64_t x_stride;
  bool add;  // y +=; then without bias and activation
  const float* bias;
  Activation activation;
  MutableNumbers z;  // kept before the activation, in the type of y; or none
  std::int64_t z_stride;
  MutableNumbers y;
  std::int64_t y_stride;
};

}  // namespace etc::ops::cpu
