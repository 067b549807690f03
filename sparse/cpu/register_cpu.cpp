#include "sparse/register_cpu.h"

#include <hwy/targets.h>

#include "sparse/attention.h"

namespace etc::sparse {

void register_counting_kernels() {
  attention_forward_slot.fill(Device::cpu, [](const AttentionForward&) {});
  attention_backward_slot.fill(Device::cpu, [](const AttentionBackward&) {});
}

void restrict_to_avx2(bool restricted) {
  hwy::DisableTargets(restricted ? HWY_AVX3 | HWY_AVX3_DL : 0);
}

}  // namespace etc::sparse
