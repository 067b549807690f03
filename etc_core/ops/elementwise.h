// Arithmetic on whole arrays: gradient accumulation, sums of branches, decay.
#pragma once

#include <cstdint>

#include "etc_core/base/bf16.h"
#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// All arrays are [size] without gaps, on the device. Same bits for any thread count.

// y = a + b; y may be a or b. In bf16 (where keeps_bf16(), base/backend.h; size even) the sum is rounded to nearest even.
void add(Device device, const float* a, const float* b, float* y, std::int64_t size);
void add(Device device, const Bf16* a, const Bf16* b, Bf16* y, std::int64_t size);

// y = x, rounded to bf16, to nearest even. Where keeps_bf16(); size even.
void round_to_bf16(Device device, const float* x, Bf16* y, std::int64_t size);

// a += s·b; the product and the sum are each rounded once (no fused multiply-add).
void axpy(Device device, float s, const float* b, float* a, std::int64_t size);

// a *= s.
void scale(Device device, float s, float* a, std::int64_t size);

extern KernelSlot<void(const float* a, const float* b, float* y, std::int64_t)> add_kernel;
extern KernelSlot<void(const Bf16* a, const Bf16* b, Bf16* y, std::int64_t)> add_bf16_kernel;
extern KernelSlot<void(const float* x, Bf16* y, std::int64_t)> round_to_bf16_kernel;
extern KernelSlot<void(float s, const float* b, float* a, std::int64_t)> axpy_kernel;
extern KernelSlot<void(float s, float* a, std::int64_t)> scale_kernel;

}  // namespace etc::ops
