#include "sparse/register_cpu.h"

#include <hwy/targets.h>

#include "sparse/cpu/kernels.h"
#include "sparse/global_attention.h"
#include "sparse/long_attention.h"

namespace etc::sparse {

void register_cpu_kernels() {
  register_long_attention_cpu();
  register_global_attention_cpu();
}

void register_counting_kernels() {
  long_attention_forward_slot.fill(Device::cpu, [](const LongAttentionForward&) {});
  long_attention_backward_slot.fill(Device::cpu, [](const LongAttentionBackward&) {});
  global_attention_forward_slot.fill(Device::cpu, [](const GlobalAttentionForward&) {});
  global_attention_backward_slot.fill(Device::cpu, [](const GlobalAttentionBackward&) {});
}

void restrict_to_avx2(bool restricted) {
  hwy::DisableTargets(restricted ? HWY_AVX3 | HWY_AVX3_DL : 0);
}

}  // namespace etc::sparse
