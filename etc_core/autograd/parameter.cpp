#include "etc_core/autograd/parameter.h"

namespace etc {

std::int64_t Parameter::size() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

Tensor& Parameter::allocate() {
  if (!value || value.device() != Device::cpu) value = Tensor::empty(shape, Purpose::weights);
  ++version;
  return value;
}

Tensor& Parameter::gradient() {
  if (!grad) grad = Tensor::zeros(shape, Purpose::gradients, value.device());
  return grad;
}

}  // namespace etc
