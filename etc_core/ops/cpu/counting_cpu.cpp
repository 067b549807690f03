// Kernels that compute nothing: they take the working memory that the real ones take on the calling thread, so that the
// ledger sees it (base/counting.h).
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/register.h"

namespace etc::ops {

namespace {

void take_packing(std::int64_t k, std::int64_t n) {
  cpu::Scratch scratch;
  scratch.take<float>(cpu::packing_floats(k, n));
}

void count_linear(const LinearForward& a) {
  if (a.packed == nullptr) take_packing(a.in, a.out);
}

void count_linear_backward(const LinearBackward& a) {
  if (a.dx != nullptr) take_packing(a.out, a.in);
}

void count_embedding_backward(const EmbeddingBackward& a) {
  cpu::Scratch scratch;
  scratch.take<std::int64_t>(2 * a.rows + 1);
}

}  // namespace

void register_counting_ops() {
  linear_kernel.fill(Device::cpu, count_linear);
  linear_backward_kernel.fill(Device::cpu, count_linear_backward);
  embedding_backward_kernel.fill(Device::cpu, count_embedding_backward);
  pack_weights_kernel.fill(Device::cpu, [](const float*, WeightLayout, Purpose purpose, PackedWeights& packed) {
    packed.bytes = Bytes(cpu::packed_bytes(packed), purpose);
  });
  activation_forward_kernel.fill(Device::cpu, [](Activation, const float*, float*, std::int64_t) {});
  activation_backward_kernel.fill(Device::cpu, [](Activation, const float*, const float*, float*, std::int64_t) {});
  layer_norm_kernel.fill(Device::cpu, [](const LayerNormForward&) {});
  layer_norm_backward_kernel.fill(Device::cpu, [](const LayerNormBackward&) {});
  dropout_add_kernel.fill(Device::cpu, [](const DropoutAdd&) {});
  embedding_kernel.fill(Device::cpu, [](const EmbeddingForward&) {});
  cross_entropy_kernel.fill(Device::cpu, [](const CrossEntropy&) {});
  add_kernel.fill(Device::cpu, [](const float*, const float*, float*, std::int64_t) {});
  axpy_kernel.fill(Device::cpu, [](float, const float*, float*, std::int64_t) {});
  scale_kernel.fill(Device::cpu, [](float, float*, std::int64_t) {});
  sum_segments_kernel.fill(Device::cpu, [](const Segments&) {});
  spread_segments_kernel.fill(Device::cpu, [](const Segments&) {});
  sum_of_squares_kernel.fill(Device::cpu, [](const float*, std::int64_t) { return 0.0; });
}

}  // namespace etc::ops
