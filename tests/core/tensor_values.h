// Numbers of a tensor on the CPU, to be compared.
#pragma once

#include <vector>

#include "etc_core/tensor/tensor.h"

namespace etc::test {

inline std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data(), tensor.data() + tensor.size()};
}

}  // namespace etc::test
