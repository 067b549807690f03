#include "etc_core/ops/elementwise.h"

#include "etc_core/base/profiler.h"

namespace etc::ops {

constinit KernelSlot<void(const float*, const float*, float*, std::int64_t)> add_kernel{"add"};
constinit KernelSlot<void(const Bf16*, const Bf16*, Bf16*, std::int64_t)> add_bf16_kernel{"add bf16"};
constinit KernelSlot<void(const float*, Bf16*, std::int64_t)> round_to_bf16_kernel{"round_to_bf16"};
constinit KernelSlot<void(float, const float*, float*, std::int64_t)> axpy_kernel{"axpy"};
constinit KernelSlot<void(float, float*, std::int64_t)> scale_kernel{"scale"};

void add(Device device, const float* a, const float* b, float* y, std::int64_t size) {
  const profiler::Scope profiled("add", {0, 12.0 * static_cast<double>(size)});
  add_kernel(device, a, b, y, size);
}

void add(Device device, const Bf16* a, const Bf16* b, Bf16* y, std::int64_t size) {
  const profiler::Scope profiled("add bf16", {0, 6.0 * static_cast<double>(size)});
  add_bf16_kernel(device, a, b, y, size);
}

void round_to_bf16(Device device, const float* x, Bf16* y, std::int64_t size) {
  const profiler::Scope profiled("round_to_bf16", {0, 6.0 * static_cast<double>(size)});
  round_to_bf16_kernel(device, x, y, size);
}

void axpy(Device device, float s, const float* b, float* a, std::int64_t size) {
  const profiler::Scope profiled("axpy", {0, 12.0 * static_cast<double>(size)});
  axpy_kernel(device, s, b, a, size);
}

void scale(Device device, float s, float* a, std::int64_t size) {
  const profiler::Scope profiled("scale", {0, 8.0 * static_cast<double>(size)});
  scale_kernel(device, s, a, size);
}

}  // namespace etc::ops
