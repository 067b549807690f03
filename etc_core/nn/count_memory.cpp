#include "etc_core/nn/count_memory.h"

#include "etc_core/base/counting.h"
#include "etc_core/ops/cpu/scratch.h"
#include "sparse/register_cpu.h"

namespace etc {

namespace {

// Called once, because other threads may read the slots later.
bool register_counting() {
  sparse::register_counting_kernels();
  return true;
}

}  // namespace

MemoryReport count_memory(const std::function<void()>& body) {
  static const bool registered = register_counting();
  static_cast<void>(registered);
  const CountingMode mode;
  const ops::cpu::CountingScratch scratch;
  body();
  return memory_ledger::report();
}

}  // namespace etc
