#include "etc_core/ops/elementwise.h"

namespace etc::ops {

constinit KernelSlot<void(const float*, const float*, float*, std::int64_t)> add_kernel{"add"};
constinit KernelSlot<void(float, const float*, float*, std::int64_t)> axpy_kernel{"axpy"};
constinit KernelSlot<void(float, float*, std::int64_t)> scale_kernel{"scale"};
constinit KernelSlot<double(const float*, std::int64_t)> sum_of_squares_kernel{"sum_of_squares"};

void add(Device device, const float* a, const float* b, float* y, std::int64_t size) {
  add_kernel(device, a, b, y, size);
}

void axpy(Device device, float s, const float* b, float* a, std::int64_t size) {
  axpy_kernel(device, s, b, a, size);
}

void scale(Device device, float s, float* a, std::int64_t size) {
  scale_kernel(device, s, a, size);
}

double sum_of_squares(Device device, const float* x, std::int64_t size) {
  return sum_of_squares_kernel(device, x, size);
}

}  // namespace etc::ops
