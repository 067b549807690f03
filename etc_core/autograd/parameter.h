// One trainable variable. Operators on the tape read `value` and add to `gradient()`; nn/parameters.h holds the set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/tensor/tensor.h"

namespace etc {

// How a parameter is initialised (etc-core 3, task-wikihop 4).
struct Initializer {
  enum class Kind { zeros, ones, normal, truncated_normal, glorot_uniform, uniform } kind = Kind::zeros;
  // Standard deviation of a normal or uniform distribution; truncated_normal: samples beyond two standard deviations
  // are redrawn. Uniform values lie within ± sqrt(3)·stddev: Xavier initialisation has stddev sqrt(2/(in + out)), and a
  // gain scales stddev.
  float stddev = 0;
  std::int64_t zero_row = -1;  // of a matrix: the row that is initialised with zeros, such as padding's; -1: none
};

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  Initializer initializer;
  Tensor value;               // undefined until initialize() or a load, so that a model can be counted without memory
  Tensor grad;                // undefined until the first gradient; parameters without gradient are not updated
  std::uint64_t version = 0;  // must be incremented by code that changes value; packed copies compare it

  std::int64_t size() const;  // product of the shape

  // Uninitialised host memory for the value, allocated at the first call; increments version. A model computes on the
  // device that holds its values; ParameterSet::to() moves them there once they are filled.
  Tensor& allocate();

  // The gradient, allocated (zeroed, Purpose::gradients) on the value's device at the first call.
  Tensor& gradient();

  // The same for an operator that can write the whole gradient: at the first call it is not zeroed, add is false, and the
  // operator must write every number (=); later it must add to them (+=).
  struct GradientTarget {
    float* data;
    bool add;
  };
  GradientTarget gradient_target();
};

}  // namespace etc
