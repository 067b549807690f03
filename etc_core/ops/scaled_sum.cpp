#include "etc_core/ops/scaled_sum.h"

#include <initializer_list>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"

namespace etc::ops {

constinit KernelSlot<void(const ScaledSumForward&)> scaled_sum_kernel{"scaled_sum"};
constinit KernelSlot<void(const ScaledSumBackward&)> scaled_sum_backward_kernel{"scaled_sum_backward"};

namespace {

struct Sizes {
  std::int64_t size, alphas;
};

void check(const char* where, Sizes sizes, std::initializer_list<std::pair<const char*, const void*>> given) {
  const auto [size, alphas] = sizes;
  if (size < 0) fail(where, "size: expected at least 0, got {}", size);
  if (alphas < 1 || size % alphas != 0) {
    fail(where, "alphas: expected 1, or the columns of a matrix of {} numbers, got {}", size, alphas);
  }
  for (const auto& [name, array] : given) {
    if (array == nullptr && size > 0) fail(where, "{} is missing (null)", name);
  }
}

}  // namespace

void scaled_sum(Device device, const ScaledSumForward& args) {
  constexpr const char* kWhere = "scaled_sum";
  check(kWhere, {args.size, args.alphas},
        {{"x", args.x}, {"branch", args.branch}, {"alpha", args.alpha}, {"y", args.y}});
  if (args.size == 0) return;
  const profiler::Scope profiled(kWhere, {0, 12.0 * static_cast<double>(args.size)});
  scaled_sum_kernel(device, args);
}

void scaled_sum_backward(Device device, const ScaledSumBackward& args) {
  constexpr const char* kWhere = "scaled_sum_backward";
  check(kWhere, {args.size, args.alphas}, {{"dy", args.dy}, {"branch", args.branch}, {"alpha", args.alpha}});
  if (args.size == 0 || (args.dbranch == nullptr && args.dalpha == nullptr)) return;
  const int arrays = 1 + (args.dbranch != nullptr) + (args.dalpha != nullptr);
  const profiler::Scope profiled(kWhere, {0, 4.0 * arrays * static_cast<double>(args.size)});
  scaled_sum_backward_kernel(device, args);
}

}  // namespace etc::ops
