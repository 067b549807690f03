// Helpers for tests of the CUDA operators, which compare each with the CPU's operator.
#pragma once

#include <vector>

#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/register.h"

namespace etc::test {

inline void register_both() {
  ops::register_cpu_ops();
  ops::register_cuda_ops();
}

inline std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

}  // namespace etc::test
