#include "etc_core/autograd/parameter.h"

#include "etc_core/base/shape.h"

namespace etc {

std::int64_t Parameter::size() const {
  return element_count(shape);
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

Parameter::GradientTarget Parameter::gradient_target() {
  const bool add = static_cast<bool>(grad);
  if (!add) grad = Tensor::empty(shape, Purpose::gradients, value.device());
  return {grad.data(), add};
}

}  // namespace etc
