#include "etc_core/ops/position_bias.h"

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"

namespace etc::ops {

constinit KernelSlot<void(const PositionBiasForward&)> position_bias_kernel{"position_bias"};
constinit KernelSlot<void(const PositionBiasBackward&)> position_bias_backward_kernel{"position_bias_backward"};

namespace {

template <typename Args>
void check(const char* where, const Args& args, const char* name, const float* array) {
  if (args.rows < 0 || args.heads < 1 || args.head_size < 1) {
    fail(where, "expected R >= 0 rows of N >= 1 heads of D >= 1, got R={}, N={}, D={}", args.rows, args.heads,
         args.head_size);
  }
  if (args.rows == 0) return;
  if (args.rel == nullptr) fail(where, "rel is missing (null)");
  if (array == nullptr) fail(where, "{} is missing (null)", name);
}

template <typename Args>
profiler::Work work(const Args& args, double bytes) {
  return {0, bytes * static_cast<double>(args.rows * args.heads * args.head_size)};
}

}  // namespace

void position_bias(Device device, const PositionBiasForward& args) {
  constexpr const char* kWhere = "position_bias";
  check(kWhere, args, "y", args.y);
  if (args.rows == 0) return;
  const profiler::Scope profiled(kWhere, work(args, 4));
  position_bias_kernel(device, args);
}

void position_bias_backward(Device device, const PositionBiasBackward& args) {
  constexpr const char* kWhere = "position_bias_backward";
  check(kWhere, args, "dy", args.dy);
  if (args.rows == 0) return;
  const profiler::Scope profiled(kWhere, work(args, 12));
  position_bias_backward_kernel(device, args);
}

}  // namespace etc::ops
