// Dense layers on CUDA: their products, and the kernels before and after them.
#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/ops/cuda/host_array.h"
#include "etc_core/ops/cuda/kernels.h"
#include "etc_core/ops/cuda/launch.h"
#include "etc_core/ops/cuda/product.h"
#include "etc_core/ops/cuda/row_slices.h"
#include "etc_core/ops/linear.h"

namespace etc::ops::cuda {

namespace {

// Rows of bf16 begin at multiples of 16 bytes, as the library's fastest kernels require.
std::int64_t bf16_stride(std::int64_t cols) {
  return round_up(cols, 8);
}

// [rows, cols] as bf16, rows bf16_stride(cols) apart.
Bytes rounded(const float* from, std::int64_t rows, std::int64_t cols, std::int64_t stride, Purpose purpose) {
  const std::int64_t width = bf16_stride(cols), words = rows * width / 2;  // two numbers a word; width is even
  Bytes bytes = simt::device_bytes(words * static_cast<std::int64_t>(sizeof(std::uint32_t)), purpose);
  launch(RoundRowsParams{.rows = rows,
                         .cols = cols,
                         .stride = stride,
                         .width = width,
                         .from = span(from, rows == 0 ? 0 : (rows - 1) * stride + cols),
                         .to = {static_cast<std::uint32_t*>(bytes.data()), words}},
         simt::stream());
  return bytes;
}

// The packed form is [in, out] whatever the layout was; in bf16 the rows are padded as by rounded().
void pack_weights(const float* weight, WeightLayout layout, Purpose purpose, PackedWeights& packed) {
  if (packed.compute == ComputeType::int8) {
    fail("pack_weights", "cuda: expected fp32 or bf16, got int8 (--device cpu offers it)");
  }
  const std::int64_t in = packed.in, out = packed.out, bytes = in * out * static_cast<std::int64_t>(sizeof(float));
  std::vector<float> turned;  // [in, out] on the host; packing happens once per model
  if (layout == WeightLayout::out_in) {
    turned.resize(static_cast<std::size_t>(in * out));
    for (std::int64_t i = 0; i < in; ++i) {
      for (std::int64_t j = 0; j < out; ++j) turned[static_cast<std::size_t>(i * out + j)] = weight[j * in + i];
    }
    weight = turned.data();
  }
  // In bf16 the fp32 matrix stays on the device only until it has been rounded.
  Bytes matrix = simt::device_bytes(bytes, purpose);  // [in, out]
  simt::copy_to_device(matrix.data(), weight, bytes);
  packed.bytes = packed.compute == ComputeType::fp32
                     ? std::move(matrix)
                     : rounded(static_cast<const float*>(matrix.data()), in, out, out, purpose);
}

// Bias and activation in a separate kernel, in place on y [rows, out] in fp32, where the library does not fuse them.
void finish_rows(const LinearForward& a) {
  launch(FinishRowsParams{.rows = a.rows,
                          .cols = a.out,
                          .stride = a.y_stride,
                          .activation = a.activation,
                          .bias = span(a.bias, a.out),
                          .y = span(a.y, (a.rows - 1) * a.y_stride + a.out),
                          .z = span(a.pre_activation, a.rows * a.out)},
         simt::stream());
}

// A matrix of a call, in fp32 or bf16.
struct Given {
  const float* fp32;
  const Bf16* bf16;
  std::int64_t stride;
};

// A matrix [rows, cols] as a factor of products in `compute`: the caller's matrix, or a rounded copy owned by this
// object.
class Operand {
 public:
  Operand(ComputeType compute, const Given& from, std::int64_t rows, std::int64_t cols) {
    if (compute == ComputeType::bf16 && from.bf16 == nullptr) {
      copy_ = rounded(from.fp32, rows, cols, from.stride, Purpose::scratch);
      data_ = copy_.data();
      stride_ = bf16_stride(cols);
    } else {
      data_ = from.bf16 != nullptr ? static_cast<const void*>(from.bf16) : from.fp32;
      stride_ = from.stride;
    }
  }

  Factor as_stored() const { return {.data = data_, .stride = stride_, .transposed = false}; }
  Factor transposed() const { return {.data = data_, .stride = stride_, .transposed = true}; }

 private:
  Bytes copy_;           // [rows, bf16_stride(cols)] in bf16; empty if the caller's matrix is used
  const void* data_;     // copy_'s, or the caller's
  std::int64_t stride_;  // in numbers
};

// W in its stored layout.
Operand weight_operand(ComputeType compute, const float* weight, std::int64_t in, std::int64_t out, bool turned) {
  return turned ? Operand(compute, {weight, nullptr, in}, out, in) : Operand(compute, {weight, nullptr, out}, in, out);
}

// The rest of multiply_and_finish() for y in bf16. The bias is rounded to bf16, too: the library requires it for bf16
// results.
void multiply_to_bf16(const LinearForward& a, Product product) {
  Bytes bias;  // [out]
  if (a.bias != nullptr) bias = rounded(a.bias, 1, a.out, a.out, Purpose::scratch);
  product.bias = bias.data();
  product.c_type = ElementType::bf16;
  const bool fused = a.activation == Activation::linear || a.activation == Activation::gelu;
  product.gelu = a.activation == Activation::gelu;
  product.c = a.y_bf16;
  if (fused) product.pre_activation = a.pre_activation_bf16;
  // Other activations are a separate pass, which reads z if it is kept.
  const bool kept = !fused && a.pre_activation_bf16 != nullptr;
  if (kept) {
    product.c = a.pre_activation_bf16;
    product.c_stride = a.out;
  }
  multiply_rows(product);
  if (fused) return;
  if (a.y_stride != a.out) fail("linear", "cuda: y in bf16: expected rows without gaps beside this activation");
  const std::int64_t size = a.rows * a.out;
  const Bf16* const z = kept ? a.pre_activation_bf16 : a.y_bf16;
  launch(ActivationBf16Params{a.activation, words(z, size), {}, words(a.y_bf16, size)}, simt::stream());
}

// y = act(x·W + b) with W [in, out] prepared as a factor.
void multiply_and_finish(const LinearForward& a, ComputeType compute, const Factor& weight) {
  const Operand x(compute, {a.x, a.x_bf16, a.x_stride}, a.rows, a.in);  // [rows, in]
  Product product;
  product.rows = a.rows;
  product.cols = a.out;
  product.inner = a.in;
  product.compute = compute;
  product.a = x.as_stored();
  product.b = weight;
  product.c = a.y;
  product.c_stride = a.y_stride;
  if (a.y_bf16 != nullptr) return multiply_to_bf16(a, product);
  // The library fuses the epilogue of linear and gelu layers; where its alignment rules are not met, our own kernel
  // computes it.
  const bool fused_gelu = a.activation == Activation::gelu && (a.pre_activation == nullptr || a.out % 8 == 0);
  if (a.activation == Activation::linear || fused_gelu) {
    product.bias = a.bias;
    product.gelu = fused_gelu;
    product.pre_activation = a.pre_activation;
    return multiply_rows(product);
  }
  multiply_rows(product);
  finish_rows(a);
}

void linear(const LinearForward& a) {
  if (a.packed != nullptr) {
    const ComputeType compute = a.packed->compute;
    const std::int64_t stride = compute == ComputeType::bf16 ? bf16_stride(a.out) : a.out;
    return multiply_and_finish(a, compute, {.data = a.packed->bytes.data(), .stride = stride, .transposed = false});
  }
  const bool turned = a.layout == WeightLayout::out_in;
  const Operand weight = weight_operand(a.compute, a.weight, a.in, a.out, turned);
  multiply_and_finish(a, a.compute, turned ? weight.transposed() : weight.as_stored());
}

void multiply_backward(const LinearBackward& a) {
  const bool turned = a.layout == WeightLayout::out_in;
  const Operand dz(a.compute, {a.dz, a.dz_bf16, a.dz_stride}, a.rows, a.out);  // [rows, out], for both products
  if (a.dx != nullptr || a.dx_bf16 != nullptr) {
    // forward: z = x·W; so dx = dz·Wᵀ.
    const Operand weight = weight_operand(a.compute, a.weight, a.in, a.out, turned);
    Product product;
    product.rows = a.rows;
    product.cols = a.in;
    product.inner = a.out;
    product.compute = a.compute;
    product.a = dz.as_stored();
    product.b = turned ? weight.as_stored() : weight.transposed();
    product.c = a.dx_bf16 != nullptr ? static_cast<void*>(a.dx_bf16) : a.dx;
    product.c_type = a.dx_bf16 != nullptr ? ElementType::bf16 : ElementType::fp32;
    product.c_stride = a.dx_stride;
    product.add = a.add_to_dx;
    multiply_rows(product);
  }
  if (a.dweight != nullptr) {
    // forward: z = x·W; so dW = xᵀ·dz, or its transpose dzᵀ·x. Rows of dW are not
    // tokens, so multiply_rows(), which slices tokens, does not apply.
    const Operand x(a.compute, {a.x, a.x_bf16, a.x_stride}, a.rows, a.in);
    Product product;
    product.rows = turned ? a.out : a.in;
    product.cols = turned ? a.in : a.out;
    product.inner = a.rows;
    product.compute = a.compute;
    product.a = (turned ? dz : x).transposed();
    product.b = (turned ? x : dz).as_stored();
    product.c = a.dweight;
    product.c_stride = product.cols;
    product.add = a.add_to_dweight;
    multiply(product);
  }
}

void linear_backward(const LinearBackward& a) {
  if (a.dx != nullptr || a.dx_bf16 != nullptr || a.dweight != nullptr) multiply_backward(a);
  if (a.dbias != nullptr) {
    const std::int64_t partial = column_blocks(a.rows) * a.out;
    // forward: z = x·W + b; so db += column sums of dz, in two steps of fixed order: [blocks, out], then [out].
    Bytes memory = simt::device_bytes(partial * static_cast<std::int64_t>(sizeof(float)), Purpose::scratch);
    launch(ColumnSumParams{.rows = a.rows,
                           .cols = a.out,
                           .stride = a.dz_stride,
                           .x = span(a.dz, (a.rows - 1) * a.dz_stride + a.out),
                           .x_bf16 = words(a.dz_bf16, (a.rows - 1) * a.dz_stride + a.out),
                           .partial = {static_cast<float*>(memory.data()), partial},
                           .sums = span(a.dbias, a.out)},
           simt::stream());
  }
}

}  // namespace

void register_linear() {
  linear_kernel.fill(Device::cuda, linear);
  linear_backward_kernel.fill(Device::cuda, linear_backward);
  pack_weights_kernel.fill(Device::cuda, pack_weights);
}

}  // namespace etc::ops::cuda
