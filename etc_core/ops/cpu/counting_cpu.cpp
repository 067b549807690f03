// The kernels of Device::counting, which compute nothing: they take the working memory that the CPU's take on the
// calling thread, so that the ledger sees it (base/counting.h).
#include <cstddef>

#include "etc_core/base/cpu_features.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/cpu/weight_gradient.h"
#include "etc_core/ops/register.h"

namespace etc::ops {

namespace {

// The ledger keeps the highest mark, so taking and giving back at once is enough.
void take(std::int64_t bytes) {
  cpu::Scratch scratch;
  scratch.take<std::byte>(bytes);
}

// A number type without products on this processor is counted for a device that has them: it rounds both operands of
// every product, in bf16 to two bytes a number.
std::int64_t rounded_bytes(std::int64_t rows, std::int64_t k, std::int64_t n) {
  return 2 * k * (rows + n);
}

// Packed weights were charged when they were packed; only products that pack for themselves take scratch.
void count_linear(const LinearForward& a) {
  if (a.packed != nullptr) return;
  take(cpu_offers(a.compute) ? cpu::packing_scratch(a.compute, a.rows, a.in, a.out)
                             : rounded_bytes(a.rows, a.in, a.out));
}

// dx packs W for each call as the forward does; dW in fp32 reads x and dz where they are and takes nothing.
void count_linear_backward(const LinearBackward& a) {
  if (!cpu_offers(a.compute)) {
    if (a.dx != nullptr) take(rounded_bytes(a.rows, a.out, a.in));
    if (a.dweight != nullptr) take(2 * a.rows * (a.in + a.out));
    return;
  }
  if (a.dx != nullptr) take(cpu::packing_scratch(a.compute, a.rows, a.out, a.in));
  if (a.dweight == nullptr || a.compute == ComputeType::fp32) return;
  const bool in_out = a.layout == WeightLayout::in_out;
  take(cpu::weight_gradient_bf16_scratch(a.rows, in_out ? a.in : a.out, in_out ? a.out : a.in));
}

// order [rows] and first_of [rows + 1] of embedding_cpu.cpp, eight bytes each.
void count_embedding_backward(const EmbeddingBackward& a) {
  take((2 * a.rows + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)));
}

}  // namespace

void register_counting_ops() {
  linear_kernel.fill(Device::counting, count_linear);
  linear_backward_kernel.fill(Device::counting, count_linear_backward);
  embedding_backward_kernel.fill(Device::counting, count_embedding_backward);
  pack_weights_kernel.fill(Device::counting, [](const float*, WeightLayout, Purpose purpose, PackedWeights& packed) {
    const std::int64_t bytes =
        cpu_offers(packed.compute) ? cpu::packed_bytes(packed) : rounded_bytes(0, packed.in, packed.out);
    packed.bytes = Bytes(bytes, purpose);
  });
  activation_forward_kernel.fill(Device::counting, [](Activation, const float*, float*, std::int64_t) {});
  activation_backward_kernel.fill(Device::counting,
                                  [](Activation, const float*, const float*, float*, std::int64_t) {});
  layer_norm_kernel.fill(Device::counting, [](const LayerNormForward&) {});
  layer_norm_backward_kernel.fill(Device::counting, [](const LayerNormBackward&) {});
  dropout_add_kernel.fill(Device::counting, [](const DropoutAdd&) {});
  embedding_kernel.fill(Device::counting, [](const EmbeddingForward&) {});
  cross_entropy_kernel.fill(Device::counting, [](const CrossEntropy&) {});
  add_kernel.fill(Device::counting, [](const float*, const float*, float*, std::int64_t) {});
  axpy_kernel.fill(Device::counting, [](float, const float*, float*, std::int64_t) {});
  scale_kernel.fill(Device::counting, [](float, float*, std::int64_t) {});
  sum_segments_kernel.fill(Device::counting, [](const Segments&) {});
  spread_segments_kernel.fill(Device::counting, [](const Segments&) {});
  sum_of_squares_kernel.fill(Device::counting, [](const float*, std::int64_t) { return 0.0; });
  // What decides on later sizes, or is not called to count.
  top_k_kernel.fill(Device::counting, cpu::top_k);
  gradient_squares_kernel.fill(Device::counting, cpu::gradient_squares);
  update_moments_kernel.fill(Device::counting, cpu::update_moments);
  update_weights_kernel.fill(Device::counting, cpu::update_weights);
}

}  // namespace etc::ops
