#include "etc_core/ops/activation.h"

#include "etc_core/base/ascii.h"
#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"

namespace etc::ops {

constinit KernelSlot<void(Activation, const float*, float*, std::int64_t)> activation_forward_kernel{"activation"};
constinit KernelSlot<void(Activation, const float*, const float*, float*, std::int64_t)> activation_backward_kernel{
    "activation_backward"};
constinit KernelSlot<void(Activation, const Bf16*, Bf16*, std::int64_t)> activation_forward_bf16_kernel{
    "activation bf16"};
constinit KernelSlot<void(Activation, const Bf16*, const Bf16*, Bf16*, std::int64_t)> activation_backward_bf16_kernel{
    "activation_backward bf16"};

Activation activation_from_name(const std::string& name) {
  const std::string lower = lower_ascii(name);
  if (lower.empty()) return Activation::linear;
  for (const Activation activation :
       {Activation::linear, Activation::relu, Activation::tanh, Activation::gelu, Activation::gelu_erf}) {
    if (lower == activation_name(activation)) return activation;
  }
  fail_usage("activation", "expected gelu, gelu_erf, relu, tanh or linear, got \"{}\"", name);
}

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::tanh:
      return "tanh";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_erf:
      return "gelu_erf";
    case Activation::linear:
      break;
  }
  return "linear";
}

void activation_forward(Device device, Activation activation, const float* x, float* y, std::int64_t size) {
  const profiler::Scope profiled("activation", {0, 8.0 * static_cast<double>(size)});
  activation_forward_kernel(device, activation, x, y, size);
}

void activation_backward(Device device, Activation activation, const float* x, const float* dy, float* dx,
                         std::int64_t size) {
  const profiler::Scope profiled("activation_backward", {0, 12.0 * static_cast<double>(size)});
  activation_backward_kernel(device, activation, x, dy, dx, size);
}

void activation_forward(Device device, Activation activation, const Bf16* x, Bf16* y, std::int64_t size) {
  const profiler::Scope profiled("activation bf16", {0, 4.0 * static_cast<double>(size)});
  activation_forward_bf16_kernel(device, activation, x, y, size);
}

void activation_backward(Device device, Activation activation, const Bf16* x, const Bf16* dy, Bf16* dx,
                         std::int64_t size) {
  const profiler::Scope profiled("activation_backward bf16", {0, 6.0 * static_cast<double>(size)});
  activation_backward_bf16_kernel(device, activation, x, dy, dx, size);
}

}  // namespace etc::ops
