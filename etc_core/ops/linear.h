// Dense products with weights: y = act(x·W + b), and its gradients.
//
// The arithmetic is done tile by tile. A row of y depends only on its own row of x and on W, not on the height of its
// tile, its position, the number of rows or the number of threads.
// All arrays of a call lie on its device; matrices are packed from host memory.
#pragma once

#include <cstdint>

#include "etc_core/base/bf16.h"
#include "etc_core/base/buffer.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"
#include "etc_core/ops/activation_kind.h"

namespace etc::ops {

// How a weight matrix lies in memory. Both are dense, without gaps between rows.
enum class WeightLayout : int {
  in_out,  // [in, out]: kernels of dense layers
  out_in,  // [out, in]: heads, whose rows are classes, and an embedding table used as output layer
};

// An unpacked weight matrix in host memory.
struct WeightMatrix {
  const float* data = nullptr;  // [in, out] or [out, in]
  std::int64_t in = 0, out = 0;
  WeightLayout layout = WeightLayout::in_out;
};

// A weight matrix in the order in which the micro-kernel reads it. It is packed once for inference; the source may then
// be freed. Movable, not copyable; about as large as the source, with AMX 1.5 times. Training keeps no packed weights:
// linear() packs into scratch.
struct PackedWeights {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Device device = Device::cpu;
  ComputeType compute = ComputeType::fp32;  // the product's operands; bf16 takes half the bytes, int8 a quarter
  Bytes bytes = {};
};

// Packs a matrix for products in `compute` on a device and charges its bytes to the purpose. O(in*out).
//   bf16: weights and, tile by tile, rows of x are rounded to nearest even
//   int8: w_ij ≈ scale_j·q_ij, scale_j = max_i |w_ij| / 127; rows of x are quantised in the same way, with one scale
//   per row, in every call
// Throws Error when the processor has no instructions for that type (cpu_offers in base/cpu_features.h).
PackedWeights pack_weights(Device device, const WeightMatrix& weight, ComputeType compute = ComputeType::fp32,
                           Purpose purpose = Purpose::weights);

// The row length of bf16 arrays is a multiple of this (16 bytes, which products on tensor cores require).
inline constexpr std::int64_t kBf16Columns = 8;

// Dense layer: every row of x times W, plus a bias, through an activation.
//   z = x·W + b,  y = act(z)
// Where the device keeps bf16 (keeps_bf16(), base/backend.h) and the product is in bf16 or int8, x, and y with z, may
// be given in bf16 instead (x_bf16 for x, …): z and y are then rounded to nearest even as they are written, and in, out
// and strides are multiples of kBf16Columns. On a GPU the bias is rounded as well, before it is added, and activations
// other than gelu are computed from the rounded z.
struct LinearForward {
  std::int64_t rows = 0, in = 0, out = 0;  // M, in, out; rows = 0 does nothing
  const float* x = nullptr;                // [M, in], rows x_stride numbers apart
  const Bf16* x_bf16 = nullptr;            // instead
  std::int64_t x_stride = 0;
  const float* weight = nullptr;  // [in, out] or [out, in]; null if `packed` is given instead
  WeightLayout layout = WeightLayout::in_out;
  const PackedWeights* packed = nullptr;    // the same matrix, packed
  ComputeType compute = ComputeType::fp32;  // for a weight that is not packed: fp32 or bf16
  const float* bias = nullptr;              // [out]; null: no bias
  Activation activation = Activation::linear;
  float* y = nullptr;      // =  [M, out], rows y_stride numbers apart; must not overlap x
  Bf16* y_bf16 = nullptr;  // instead
  std::int64_t y_stride = 0;
  float* pre_activation = nullptr;      // =  z [M, out] without gaps, for backward; null: not kept. Not for linear.
  Bf16* pre_activation_bf16 = nullptr;  // instead, together with y_bf16
};
// In bf16, x and W are rounded to nearest even and their products summed in fp32; everything else is fp32. fp32 products on
// a CPU with AMX are computed from three bf16 parts of each number, as exactly as with fp32 multiply-adds
// (ops/cpu/word_product.h).
// Rules: the bits of row i of y depend on row i of x, W, b and the activation only; packed or not makes no difference.
// Throws Error where the device does not offer the product's number type.
// Cost: 2*M*in*out operations (M rounded up to whole tiles); unpacked weights add O(in*out) for packing into scratch.
void linear(Device device, const LinearForward& args);

// Gradients of z = x·W + b for dz = dL/dz (the caller has already applied the derivative of the activation).
//   dx (= or +=) dz·Wᵀ,   dW (= or +=) xᵀ·dz,   db += sum over the rows of dz
// In bf16 the operands of the two products (dz and W, x and dz) are rounded to nearest even and their products summed
// in fp32; db is the sum of the unrounded dz. bf16 has the range of fp32, so no loss scaling is needed.
// Where the device keeps bf16 and the products are in bf16, dz, x and dx may each be given in bf16 instead: db is then
// the sum of that dz in fp32, and dx (with add_to_dx the sum) is rounded as it is written.
// Each of dx, dweight, dbias may be null: it is then not computed, and inputs that only it needs (weight; x) may be
// null, too.
struct LinearBackward {
  std::int64_t rows = 0, in = 0, out = 0;
  const float* dz = nullptr;      // [M, out], rows dz_stride numbers apart
  const Bf16* dz_bf16 = nullptr;  // instead
  std::int64_t dz_stride = 0;
  const float* x = nullptr;      // [M, in], rows x_stride numbers apart; for dweight
  const Bf16* x_bf16 = nullptr;  // instead
  std::int64_t x_stride = 0;
  const float* weight = nullptr;               // for dx
  WeightLayout layout = WeightLayout::in_out;  // of weight and of dweight
  ComputeType compute = ComputeType::fp32;     // fp32 or bf16
  float* dx = nullptr;                         // [M, in], rows dx_stride numbers apart; must not overlap dz
  Bf16* dx_bf16 = nullptr;                     // instead
  std::int64_t dx_stride = 0;
  bool add_to_dx = false;      // false: dx =, true: dx +=
  float* dweight = nullptr;    // in the layout of weight
  bool add_to_dweight = true;  // false: dweight = (all of it is written, unless M is 0)
  float* dbias = nullptr;      // +=  [out]
};
// Rules: a row of dx depends only on its row of dz and on W, as in linear(); dweight and dbias are sums over fixed
// blocks of tokens in order.
// Same bits for any thread count. Cost: 4*M*in*out operations. Throws Error as linear() does, and on int8.
void linear_backward(Device device, const LinearBackward& args);

extern KernelSlot<void(const LinearForward&)> linear_kernel;
extern KernelSlot<void(const LinearBackward&)> linear_backward_kernel;
// Allocates packed.bytes, charges them to the purpose, and fills them.
extern KernelSlot<void(const float* weight, WeightLayout, Purpose, PackedWeights&)> pack_weights_kernel;

}  // namespace etc::ops
