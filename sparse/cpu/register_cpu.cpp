#include "sparse/register_cpu.h"

#include <hwy/targets.h>

#include "sparse/cpu/kernels.h"

namespace etc::sparse {

void register_cpu_kernels() {
  register_long_attention_cpu();
  register_global_attention_cpu();
}

void restrict_to_avx2(bool restricted) {
  hwy::DisableTargets(restricted ? HWY_AVX3 | HWY_AVX3_DL : 0);
}

}  // namespace etc::sparse
