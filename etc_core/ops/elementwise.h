// Arithmetic on whole arrays: gradient accumulation, clipping, sums of branches.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// All arrays are [size] without gaps, on the device. Same bits for any thread count.

// y = a + b; y may be a or b.
void add(Device device, const float* a, const float* b, float* y, std::int64_t size);

// a += s·b, one rounding of the product and one of the sum.
void axpy(Device device, float s, const float* b, float* a, std::int64_t size);

// a *= s.
void scale(Device device, float s, float* a, std::int64_t size);

// Sum of x², in double: fixed blocks of elements, combined in order. For the global norm (etc-core 10.2) add the
// results of all gradients in a fixed order. nan and inf come through.
double sum_of_squares(Device device, const float* x, std::int64_t size);

extern KernelSlot<void(const float* a, const float* b, float* y, std::int64_t)> add_kernel;
extern KernelSlot<void(float s, const float* b, float* a, std::int64_t)> axpy_kernel;
extern KernelSlot<void(float s, float* a, std::int64_t)> scale_kernel;
extern KernelSlot<double(const float* x, std::int64_t)> sum_of_squares_kernel;

}  // namespace etc::ops
