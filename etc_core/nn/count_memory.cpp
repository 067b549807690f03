#include "etc_core/nn/count_memory.h"

#include "etc_core/base/counting.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/ops/register.h"
#include "sparse/register_cpu.h"

namespace etc {

namespace {

// Kernels out of their slots while it lives.
class CountingBackend {
 public:
  CountingBackend() {
    register_cpu_backend();  // the operators' own scratch sizes stay
    ops::register_counting_ops();
    sparse::register_counting_kernels();
  }
  ~CountingBackend() { register_cpu_backend(); }
  CountingBackend(const CountingBackend&) = delete;
  CountingBackend& operator=(const CountingBackend&) = delete;

 private:
  CountingMode mode_;
};

}  // namespace

MemoryReport count_memory(const std::function<void()>& body) {
  MemoryReport report;
  {
    const CountingBackend counting;
    memory_ledger::reset_peak();
    body();
    report = memory_ledger::report();
  }
  memory_ledger::reset_peak();
  return report;
}

}  // namespace etc
