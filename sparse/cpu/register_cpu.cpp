#include "sparse/register_cpu.h"

#include "sparse/cpu/kernels.h"

namespace etc::sparse {

void register_cpu_kernels() {
  register_long_attention_cpu();
  register_global_attention_cpu();
}

}  // namespace etc::sparse
