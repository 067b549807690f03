#include "etc_core/ops/layer_norm.h"

#include <initializer_list>

#include "etc_core/base/backend.h"
#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"

namespace etc::ops {

constinit KernelSlot<void(const LayerNormForward&)> layer_norm_kernel{"layer_norm"};
constinit KernelSlot<void(const LayerNormBackward&)> layer_norm_backward_kernel{"layer_norm_backward"};

namespace {

void check_sizes(const char* where, std::int64_t rows, std::int64_t cols) {
  if (rows < 0 || cols < 1) {
    fail(where, "sizes: expected M >= 0, H >= 1, got {}", shape_text({{"M", rows}, {"H", cols}}));
  }
}

double bytes_of(std::int64_t rows, std::int64_t cols, int arrays) {
  return 4.0 * arrays * static_cast<double>(rows * cols);
}

struct Named {
  const char* name;
  const float* data;
};

void check_given(const char* where, std::initializer_list<Named> arrays) {
  for (const auto& [name, data] : arrays) {
    if (data == nullptr) fail(where, "{} is missing (null)", name);
  }
}

}  // namespace

void layer_norm(Device device, const LayerNormForward& args) {
  constexpr const char* kWhere = "layer_norm";
  check_sizes(kWhere, args.rows, args.cols);
  if (args.branch != nullptr) check_dropout(kWhere, args.dropout, args.rows);
  if (args.branch == nullptr && args.sum != nullptr) {
    fail(kWhere, "sum is x itself when there is no branch: expected null");
  }
  if ((args.mean == nullptr) != (args.rstd == nullptr)) {
    fail(kWhere, "mean and rstd are saved together: expected both or neither, got {} alone",
         args.mean == nullptr ? "rstd" : "mean");
  }
  if (args.rows == 0) return;
  check_given(kWhere, {{"x", args.x}, {"gamma", args.gamma}, {"beta", args.beta}, {"y", args.y}});
  if (args.y_bf16 != nullptr && (!keeps_bf16(device, ComputeType::bf16) || args.cols % 2 != 0)) {
    fail(kWhere, "y_bf16: expected null with an odd H or on a device that keeps none, got H={} on {}", args.cols,
         device_name(device));
  }
  const int arrays = 2 + (args.branch != nullptr) + (args.sum != nullptr);
  const profiler::Scope profiled(kWhere, {0, bytes_of(args.rows, args.cols, arrays)});
  layer_norm_kernel(device, args);
}

void layer_norm_backward(Device device, const LayerNormBackward& args) {
  constexpr const char* kWhere = "layer_norm_backward";
  check_sizes(kWhere, args.rows, args.cols);
  const bool wants_branch = args.dbranch != nullptr || args.dbranch_bf16 != nullptr;
  if (wants_branch) check_dropout(kWhere, args.dropout, args.rows);
  if (args.dbranch_bf16 != nullptr &&
      (args.dbranch != nullptr || !keeps_bf16(device, ComputeType::bf16) || args.cols % 2 != 0)) {
    fail(kWhere,
         "dbranch_bf16: expected null beside dbranch, with an odd H or on a device that keeps none, got H={} on {}",
         args.cols, device_name(device));
  }
  if ((args.dgamma == nullptr) != (args.dbeta == nullptr)) {
    fail(kWhere, "dgamma and dbeta are computed together: expected both or neither, got {} alone",
         args.dgamma == nullptr ? "dbeta" : "dgamma");
  }
  if (args.dbranch != nullptr && args.dbranch == args.dx) fail(kWhere, "dbranch and dx must not be the same memory");
  if (args.rows == 0) return;
  check_given(kWhere,
              {{"dy", args.dy}, {"sum", args.sum}, {"mean", args.mean}, {"rstd", args.rstd}, {"gamma", args.gamma}});
  const int arrays = 2 + (args.dx != nullptr) + wants_branch;
  const profiler::Scope profiled(kWhere, {0, bytes_of(args.rows, args.cols, arrays)});
  layer_norm_backward_kernel(device, args);
}

}  // namespace etc::ops
