// One trainable variable. Operators on the tape read `value` and add to `gradient()`; nn/parameters.h holds the set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/tensor/tensor.h"

namespace etc {

// How a parameter starts (etc-core 3, task-wikihop 4).
struct Initializer {
  enum class Kind { zeros, ones, normal, truncated_normal, glorot_uniform, uniform } kind = Kind::zeros;
  // Of a normal or uniform one; truncated_normal: samples beyond two standard deviations are redrawn. Uniform values lie
  // within sqrt(3) of it: Xavier's are those of sqrt(2/(in + out)), a factor on them is one on the deviation.
  float stddev = 0;
  std::int64_t zero_row = -1;  // of a matrix: the row that begins as zeros, such as padding's; -1: none
};

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  Initializer initializer;
  Tensor value;               // undefined until initialize() or a load: a model can be counted without its memory
  Tensor grad;                // undefined until the first gradient; parameters without gradient are not updated
  std::uint64_t version = 0;  // raised by whoever changes value: packed copies compare it

  std::int64_t size() const;  // product of the shape

  // Uninitialised memory of the host for the value, made at the first call; raises version. A model computes where its
  // values are: ParameterSet::to() moves them once they are filled.
  Tensor& allocate();

  // The gradient, made (zeroed, Purpose::gradients) beside the value at the first call.
  Tensor& gradient();
};

}  // namespace etc
