// Fills the slot of every operator for Device::cpu; called by name, because linkers drop static initialisers of
// libraries.
#include "etc_core/base/cpu_limit.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/register.h"

namespace etc::ops {

void register_cpu_ops() {
  apply_cpu_limit();  // before anything asks the processor what it can do
  linear_kernel.fill(Device::cpu, cpu::linear);
  linear_backward_kernel.fill(Device::cpu, cpu::linear_backward);
  pack_weights_kernel.fill(Device::cpu, cpu::pack_weights);
  activation_forward_kernel.fill(Device::cpu, cpu::activation_forward);
  activation_backward_kernel.fill(Device::cpu, cpu::activation_backward);
  layer_norm_kernel.fill(Device::cpu, cpu::layer_norm);
  layer_norm_backward_kernel.fill(Device::cpu, cpu::layer_norm_backward);
  dropout_add_kernel.fill(Device::cpu, cpu::dropout_add);
  embedding_kernel.fill(Device::cpu, cpu::embedding);
  embedding_backward_kernel.fill(Device::cpu, cpu::embedding_backward);
  cross_entropy_kernel.fill(Device::cpu, cpu::cross_entropy);
  add_kernel.fill(Device::cpu, cpu::add);
  axpy_kernel.fill(Device::cpu, cpu::axpy);
  scale_kernel.fill(Device::cpu, cpu::scale);
  sum_segments_kernel.fill(Device::cpu, cpu::sum_segments);
  spread_segments_kernel.fill(Device::cpu, cpu::spread_segments);
  top_k_kernel.fill(Device::cpu, cpu::top_k);
  sum_of_squares_kernel.fill(Device::cpu, cpu::sum_of_squares);
  gradient_squares_kernel.fill(Device::cpu, cpu::gradient_squares);
  update_moments_kernel.fill(Device::cpu, cpu::update_moments);
  update_weights_kernel.fill(Device::cpu, cpu::update_weights);
}

}  // namespace etc::ops
