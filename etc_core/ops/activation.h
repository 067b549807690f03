// Element-wise activations of the feed-forward layers (etc-core 6.3).
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/bf16.h"
#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"
#include "etc_core/ops/activation_kind.h"

namespace etc::ops {

// "gelu", "gelu_erf", "relu", "tanh", "linear" or "", case-insensitive; any other name is a UsageError that lists them.
Activation activation_from_name(const std::string& name);
const char* activation_name(Activation activation);

// All arrays lie on the device.

// y = act(x), element by element.
//   gelu(x) = x/2 · (1 + tanh(sqrt(2/pi)·(x + 0.044715·x³)))   the tanh form
//   gelu_erf(x) = x·Phi(x), Phi(x) = (1 + erf(x/sqrt(2)))/2, within 2e-7 of Phi   (Hendrycks & Gimpel 2016)
//   relu(x) = max(x, 0)
//   x, y      [size]; y may be x itself
// Rules: nan gives nan; the bits of an element depend on that element alone. Arrays of bf16 (where keeps_bf16(),
// base/backend.h; size even) are computed in fp32 and rounded to nearest even as they are written.
void activation_forward(Device device, Activation activation, const float* x, float* y, std::int64_t size);
void activation_forward(Device device, Activation activation, const Bf16* x, Bf16* y, std::int64_t size);

// dx = dy · act'(x), element by element; x is the input of the forward, not its output. relu'(0) = relu'(nan) = 0.
//   x, dy, dx [size]; dx may be dy itself
void activation_backward(Device device, Activation activation, const float* x, const float* dy, float* dx,
                         std::int64_t size);
void activation_backward(Device device, Activation activation, const Bf16* x, const Bf16* dy, Bf16* dx,
                         std::int64_t size);

extern KernelSlot<void(Activation, const float* x, float* y, std::int64_t)> activation_forward_kernel;
extern KernelSlot<void(Activation, const float* x, const float* dy, float* dx, std::int64_t)>
    activation_backward_kernel;
extern KernelSlot<void(Activation, const Bf16* x, Bf16* y, std::int64_t)> activation_forward_bf16_kernel;
extern KernelSlot<void(Activation, const Bf16* x, const Bf16* dy, Bf16* dx, std::int64_t)>
    activation_backward_bf16_kernel;

}  // namespace etc::ops
