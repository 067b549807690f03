#include "etc_core/ops/linear.h"

#include "etc_core/base/backend.h"
#include "etc_core/base/error.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"

namespace etc::ops {

constinit KernelSlot<void(const LinearForward&)> linear_kernel{"linear"};
constinit KernelSlot<void(const LinearBackward&)> linear_backward_kernel{"linear_backward"};
constinit KernelSlot<void(const float*, WeightLayout, Purpose, PackedWeights&)> pack_weights_kernel{"pack_weights"};

namespace {

void check_sizes(const char* where, std::int64_t rows, std::int64_t in, std::int64_t out) {
  if (rows < 0 || in < 1 || out < 1) {
    fail(where, "sizes: expected M >= 0, in >= 1, out >= 1, got {}",
         shape_text({{"M", rows}, {"in", in}, {"out", out}}));
  }
}

// The work of `products` products of M, in and out; the bytes count at least x, y and the weights.
template <typename Args>
profiler::Work work_of(const Args& args, int products) {
  const auto m = static_cast<double>(args.rows), in = static_cast<double>(args.in), out = static_cast<double>(args.out);
  return {2.0 * products * m * in * out, 4.0 * products * (m * in + m * out + in * out)};
}

// One array of a call, in either fp32 or bf16.
struct Given {
  const char* name;
  const float* fp32;
  const Bf16* bf16;
};

// The stride of rows may exceed the number of columns but not be smaller.
void check_rows(const char* where, const Given& of, std::int64_t stride, std::int64_t cols) {
  if (of.fp32 == nullptr && of.bf16 == nullptr) fail(where, "{} is missing (null)", of.name);
  if (of.fp32 != nullptr && of.bf16 != nullptr) fail(where, "{}: expected fp32 or bf16, got both", of.name);
  if (stride < cols) fail(where, "{}_stride: expected at least {} columns, got {}", of.name, cols, stride);
  if (of.bf16 != nullptr && (stride % kBf16Columns != 0 || cols % kBf16Columns != 0)) {
    fail(where, "{} in bf16: expected multiples of {} columns, got {} of rows {} apart", of.name, kBf16Columns, cols,
         stride);
  }
}

// Arrays in bf16 are allowed only for bf16 and int8 products, and only where the device keeps bf16.
void check_bf16(const char* where, Device device, ComputeType compute, bool any) {
  if (!any || (compute != ComputeType::fp32 && keeps_bf16(device, ComputeType::bf16))) return;
  fail(where, "{}: expected arrays in fp32 beside products in {}, got bf16", device_name(device),
       compute_type_name(compute));
}

void check_unpacked(const char* where, ComputeType compute) {
  if (compute == ComputeType::int8) fail(where, "compute: expected fp32 or bf16, got int8 (pack the weights for it)");
}

}  // namespace

PackedWeights pack_weights(Device device, const WeightMatrix& weight, ComputeType compute, Purpose purpose) {
  check_sizes("pack_weights", 0, weight.in, weight.out);
  if (weight.data == nullptr) fail("pack_weights", "weight is missing (null)");
  PackedWeights packed{.in = weight.in, .out = weight.out, .device = device, .compute = compute};
  pack_weights_kernel(device, weight.data, weight.layout, purpose, packed);
  return packed;
}

void linear(Device device, const LinearForward& args) {
  constexpr const char* kWhere = "linear";
  check_sizes(kWhere, args.rows, args.in, args.out);
  if ((args.weight == nullptr) == (args.packed == nullptr)) {
    fail(kWhere, "expected either weight or packed, got {}", args.weight == nullptr ? "neither" : "both");
  }
  if (args.packed != nullptr && (args.packed->in != args.in || args.packed->out != args.out)) {
    fail(kWhere, "packed weights must match: expected {}, got {}", shape_text({{"in", args.in}, {"out", args.out}}),
         shape_text({{"in", args.packed->in}, {"out", args.packed->out}}));
  }
  if (args.packed != nullptr && args.packed->device != device) {
    fail(kWhere, "packed weights lie on {}, the product was asked of {}", device_name(args.packed->device),
         device_name(device));
  }
  if ((args.pre_activation != nullptr || args.pre_activation_bf16 != nullptr) &&
      args.activation == Activation::linear) {
    fail(kWhere, "pre_activation is y itself when the activation is linear: expected null");
  }
  if (args.rows == 0) return;
  check_rows(kWhere, {"x", args.x, args.x_bf16}, args.x_stride, args.in);
  check_rows(kWhere, {"y", args.y, args.y_bf16}, args.y_stride, args.out);
  if (args.packed == nullptr) check_unpacked(kWhere, args.compute);
  const ComputeType compute = args.packed == nullptr ? args.compute : args.packed->compute;
  check_bf16(kWhere, device, compute, args.x_bf16 != nullptr || args.y_bf16 != nullptr);
  if (args.y_bf16 != nullptr ? args.pre_activation != nullptr : args.pre_activation_bf16 != nullptr) {
    fail(kWhere, "pre_activation: expected the type of y");
  }
  constexpr const char* kNames[kComputeTypes] = {"linear", "linear bf16", "linear int8"};
  const profiler::Scope profiled(kNames[static_cast<int>(compute)], work_of(args, 1));
  linear_kernel(device, args);
}

void linear_backward(Device device, const LinearBackward& args) {
  constexpr const char* kWhere = "linear_backward";
  check_sizes(kWhere, args.rows, args.in, args.out);
  if (args.rows == 0) return;
  const bool wants_dx = args.dx != nullptr || args.dx_bf16 != nullptr;
  check_rows(kWhere, {"dz", args.dz, args.dz_bf16}, args.dz_stride, args.out);
  if (wants_dx) {
    check_rows(kWhere, {"dx", args.dx, args.dx_bf16}, args.dx_stride, args.in);
    if (args.weight == nullptr) fail(kWhere, "dx needs weight, which is missing (null)");
  }
  if (args.dweight != nullptr) check_rows(kWhere, {"x", args.x, args.x_bf16}, args.x_stride, args.in);
  check_unpacked(kWhere, args.compute);
  check_bf16(kWhere, device, args.compute,
             args.dz_bf16 != nullptr || args.x_bf16 != nullptr || args.dx_bf16 != nullptr);
  const char* name = args.compute == ComputeType::fp32 ? kWhere : "linear_backward bf16";
  const profiler::Scope profiled(name, work_of(args, wants_dx + (args.dweight != nullptr)));
  linear_backward_kernel(device, args);
}

}  // namespace etc::ops
