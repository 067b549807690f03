// Dense layers on the CPU: packing of weights, operands of the products, bias gradients, scratch. The tiles of the
// forward product and of dx are in panel_product.cpp.
#include <algorithm>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/dense_product.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/linear_reduced.h"
#include "etc_core/ops/cpu/panel_kernel.h"
#include "etc_core/ops/cpu/panel_product.h"
#include "etc_core/ops/cpu/panels.h"
#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/cpu/weight_gradient.h"
#include "etc_core/ops/linear.h"

namespace etc::ops::cpu {

namespace {

// Whether a product of this type runs on panels of fp32 numbers; otherwise linear_reduced.h.
bool on_panels(ComputeType compute) {
  return compute == ComputeType::fp32 && !fp32_in_parts();
}

// Floats of one packed group of panels: whole panels, but no more columns than W has.
std::int64_t packing_floats(std::int64_t k, std::int64_t n) {
  return std::min(panel_group(k, n, sizeof(float)) * kPanelCols, n) * k;
}

// For each group of panels of W ([k, n], or [n, k]): packs it into scratch and multiplies.
void product_packing(const DenseProduct& p, const float* weight, WeightLayout layout) {
  const std::int64_t panels = ceil_div(p.n, kPanelCols);
  const std::int64_t group = panel_group(p.k, p.n, sizeof(float));
  Scratch scratch;
  auto* packed = scratch.take<float>(packing_floats(p.k, p.n));  // [panels of the group][k, 192]
  for (std::int64_t first = 0; first < panels; first += group) {
    const std::int64_t count = std::min(group, panels - first);
    parallel_for(count, [&](std::int64_t i) {
      const std::int64_t first_col = (first + i) * kPanelCols;
      panel_kernel().pack({weight, layout, p.k, row_stride(layout, p.k, p.n), first_col, panel_width(p.n, first + i)},
                          packed + i * kPanelCols * p.k);
    });
    multiply_panels(p, first, count, packed);
  }
}

// The product with unpacked weights, as in training, where W changes with every step.
void multiply_packing(const DenseProduct& p, ComputeType compute, const float* weight, WeightLayout layout) {
  if (on_panels(compute)) {
    product_packing(p, weight, layout);
  } else {
    multiply_reduced_packing(p, compute, weight, layout);
  }
}

// Column sums alone, over the same blocks of tokens as the weight gradient.
void bias_gradient(std::int64_t rows, std::int64_t cols, const Numbers& dz, std::int64_t stride, float* dbias) {
  constexpr std::int64_t kColumns = 64;  // of a task: four cache lines of a row
  parallel_for(ceil_div(cols, kColumns), [&](std::int64_t task) {
    const std::int64_t first = task * kColumns;
    for (std::int64_t t = 0; t < rows; t += kTokenBlock) {
      add_column_sums(std::min(kTokenBlock, rows - t), std::min(kColumns, cols - first), dz + (t * stride + first),
                      stride, dbias + first);
    }
  });
}

// Bytes of a packed matrix of that size and number type.
std::int64_t packed_bytes(const PackedWeights& packed) {
  if (!on_panels(packed.compute)) return reduced_bytes(packed.compute, packed.in, packed.out);
  return packed.in * packed.out * static_cast<std::int64_t>(sizeof(float));
}

void pack_weights(const float* weight, WeightLayout layout, Purpose purpose, PackedWeights& packed) {
  packed.bytes = Bytes(packed_bytes(packed), purpose);
  if (!on_panels(packed.compute)) {
    return pack_reduced(
        packed.compute,
        {.weight = weight, .layout = layout, .k = packed.in, .n = packed.out, .first = 0, .count = packed.out},
        static_cast<std::byte*>(packed.bytes.data()));
  }
  auto* panels = static_cast<float*>(packed.bytes.data());  // [panels][in, 192], the last one narrower
  parallel_for(ceil_div(packed.out, kPanelCols), [&](std::int64_t panel) {
    panel_kernel().pack({weight, layout, packed.in, row_stride(layout, packed.in, packed.out), panel * kPanelCols,
                         panel_width(packed.out, panel)},
                        panels + panel * kPanelCols * packed.in);
  });
}

// Bytes of scratch that a product of [rows, k] with unpacked [k, n] takes on the calling thread to pack its weights.
std::int64_t packing_scratch(ComputeType compute, std::int64_t rows, std::int64_t k, std::int64_t n) {
  if (!on_panels(compute)) return reduced_packing_scratch(compute, rows, k, n);
  return packing_floats(k, n) * static_cast<std::int64_t>(sizeof(float));
}

void linear(const LinearForward& a) {
  const DenseProduct product{.rows = a.rows,
                             .k = a.in,
                             .n = a.out,
                             .x = {a.x, a.x_bf16},
                             .x_stride = a.x_stride,
                             .add = false,
                             .bias = a.bias,
                             .activation = a.activation,
                             .z = {a.pre_activation, a.pre_activation_bf16},
                             .z_stride = a.out,
                             .y = {a.y, a.y_bf16},
                             .y_stride = a.y_stride};
  // The bits do not depend on the branch: packed or not, the tiles and their sums are the same.
  if (a.packed == nullptr) {
    multiply_packing(product, a.compute, a.weight, a.layout);
  } else if (on_panels(a.packed->compute)) {
    multiply_panels(product, 0, ceil_div(a.out, kPanelCols), static_cast<const float*>(a.packed->bytes.data()));
  } else {
    multiply_reduced(product, a.packed->compute, static_cast<const std::byte*>(a.packed->bytes.data()));
  }
}

void linear_backward(const LinearBackward& a) {
  const Numbers x(a.x, a.x_bf16), dz(a.dz, a.dz_bf16);
  const MutableNumbers dx(a.dx, a.dx_bf16);
  if (dx.given()) {
    // forward: z = x·W; so dx = dz·Wᵀ, a product with the other layout of the same numbers.
    const DenseProduct product{.rows = a.rows,
                               .k = a.out,
                               .n = a.in,
                               .x = dz,
                               .x_stride = a.dz_stride,
                               .add = a.add_to_dx,
                               .bias = nullptr,
                               .activation = Activation::linear,
                               .z = {},
                               .z_stride = 0,
                               .y = dx,
                               .y_stride = a.dx_stride};
    multiply_packing(product, a.compute, a.weight,
                     a.layout == WeightLayout::in_out ? WeightLayout::out_in : WeightLayout::in_out);
  }
  // forward: z = x·W + b; so dW = xᵀ·dz, or its transpose dzᵀ·x, and db = column sums of dz.
  const auto gradient = [&](const WeightGradient& g) {
    on_panels(a.compute) ? weight_gradient_fp32(g) : weight_gradient_reduced(a.compute, g);
  };
  if (a.dweight != nullptr && a.layout == WeightLayout::in_out) {
    gradient({a.rows, a.in, a.out, x, a.x_stride, dz, a.dz_stride, a.dweight, a.add_to_dweight, nullptr, a.dbias});
  } else if (a.dweight != nullptr) {
    gradient({a.rows, a.out, a.in, dz, a.dz_stride, x, a.x_stride, a.dweight, a.add_to_dweight, a.dbias, nullptr});
  } else if (a.dbias != nullptr) {
    bias_gradient(a.rows, a.out, dz, a.dz_stride, a.dbias);
  }
}

// ---- Counting. ----

// If this processor has no products of a number type, the count is for a device that has them: it rounds both operands
// of every product to bf16 (two bytes a number), except those given in bf16.
std::int64_t rounded_bytes(std::int64_t rows, std::int64_t k, std::int64_t n) {
  return 2 * k * (rows + n);
}

// Packed weights were charged when they were packed.
void count_linear(const LinearForward& a) {
  if (a.packed != nullptr) {
    const ComputeType compute = a.packed->compute;
    if (cpu_offers(compute) && !on_panels(compute)) count_scratch(reduced_scratch(compute, a.rows, a.in, a.out));
    return;
  }
  count_scratch(cpu_offers(a.compute) ? packing_scratch(a.compute, a.rows, a.in, a.out)
                                      : rounded_bytes(a.x_bf16 != nullptr ? 0 : a.rows, a.in, a.out));
}

// dx packs W in each call, like the forward; dW packs x and dz.
void count_linear_backward(const LinearBackward& a) {
  const bool wants_dx = a.dx != nullptr || a.dx_bf16 != nullptr;
  if (!cpu_offers(a.compute)) {
    const std::int64_t rows_of_dz = a.dz_bf16 != nullptr ? 0 : a.rows, rows_of_x = a.x_bf16 != nullptr ? 0 : a.rows;
    if (wants_dx) count_scratch(rounded_bytes(rows_of_dz, a.out, a.in));
    if (a.dweight != nullptr) count_scratch(2 * (rows_of_x * a.in + rows_of_dz * a.out));
    return;
  }
  if (wants_dx) count_scratch(packing_scratch(a.compute, a.rows, a.out, a.in));
  if (a.dweight == nullptr) return;
  const bool in_out = a.layout == WeightLayout::in_out;
  const std::int64_t p = in_out ? a.in : a.out, q = in_out ? a.out : a.in;
  count_scratch(on_panels(a.compute) ? weight_gradient_fp32_scratch(a.rows, p, q)
                                     : weight_gradient_reduced_scratch(a.compute, a.rows, p, q));
}

void count_packed(const float*, WeightLayout, Purpose purpose, PackedWeights& packed) {
  const std::int64_t bytes =
      cpu_offers(packed.compute) ? packed_bytes(packed) : rounded_bytes(0, packed.in, packed.out);
  packed.bytes = Bytes(bytes, purpose);
}

}  // namespace

void register_linear() {
  linear_kernel.fill(Device::cpu, linear);
  linear_kernel.fill(Device::counting, count_linear);
  linear_backward_kernel.fill(Device::cpu, linear_backward);
  linear_backward_kernel.fill(Device::counting, count_linear_backward);
  pack_weights_kernel.fill(Device::cpu, pack_weights);
  pack_weights_kernel.fill(Device::counting, count_packed);
}

}  // namespace etc::ops::cpu
