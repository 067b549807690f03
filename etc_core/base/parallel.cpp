#include "etc_core/base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "etc_core/base/error.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace etc {

namespace {
int g_thread_count = 0;  // 0: not chosen, OpenMP decides
}

int thread_count() {
  return g_thread_count > 0 ? g_thread_count : omp_get_max_threads();
}

void set_thread_count(int count) {
  if (count < 1) fail_usage("threads", "expected at least 1, got {}", count);
  g_thread_count = count;
}

void set_flush_to_zero() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ | DAZ
#elif defined(__aarch64__)
  std::uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  asm volatile("msr fpcr, %0" : : "r"(fpcr | (1ull << 24)));
#endif
}

namespace parallel_detail {

void run(std::int64_t task_count, void* context, void (*call)(void*, std::int64_t, int)) {
  if (task_count <= 0) return;
  const int threads = static_cast<int>(std::min<std::int64_t>(thread_count(), task_count));
  if (threads == 1 || omp_in_parallel()) {
    set_flush_to_zero();
    // A nested loop keeps the worker's own number, so that scratch indexed by it stays private.
    const int thread = omp_in_parallel() ? omp_get_thread_num() : 0;
    for (std::int64_t task = 0; task < task_count; ++task) call(context, task, thread);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
#pragma omp parallel num_threads(threads)
  {
    set_flush_to_zero();
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1) nowait
    for (std::int64_t task = 0; task < task_count; ++task) {
      if (failed.load(std::memory_order_relaxed)) continue;
      try {
        call(context, task, thread);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace parallel_detail
}  // namespace etc
