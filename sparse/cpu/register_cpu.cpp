#include "sparse/register_cpu.h"

#include "etc_core/base/cpu_limit.h"
#include "sparse/cpu/kernels.h"
#include "sparse/global_attention.h"
#include "sparse/long_attention.h"

namespace etc::sparse {

void register_cpu_kernels() {
  apply_cpu_limit();
  register_long_attention_cpu();
  register_global_attention_cpu();
}

void register_counting_kernels() {
  long_attention_forward_slot.fill(Device::cpu, [](const LongAttentionForward&) {});
  long_attention_backward_slot.fill(Device::cpu, [](const LongAttentionBackward&) {});
  global_attention_forward_slot.fill(Device::cpu, [](const GlobalAttentionForward&) {});
  global_attention_backward_slot.fill(Device::cpu, [](const GlobalAttentionBackward&) {});
}

}  // namespace etc::sparse
