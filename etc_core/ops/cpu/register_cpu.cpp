// Fills the slots of every operator for Device::cpu and Device::counting; explicit calls are needed because linkers
// drop static initialisers of libraries.
#include "etc_core/base/cpu_limit.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/register.h"

namespace etc::ops {

void register_cpu_ops() {
  apply_cpu_limit();  // before anything queries the features of the processor
  cpu::register_activation();
  cpu::register_cross_entropy();
  cpu::register_dropout();
  cpu::register_elementwise();
  cpu::register_embedding();
  cpu::register_layer_norm();
  cpu::register_linear();
  cpu::register_position_bias();
  cpu::register_scaled_sum();
  cpu::register_segments();
  cpu::register_top_k();
  cpu::register_update();
  cpu::register_vocabulary_softmax();
}

}  // namespace etc::ops
