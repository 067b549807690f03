#include "etc_core/base/parallel.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/machine_share.h"
#include "etc_core/base/thread_team.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace etc {

namespace {
int g_thread_count = 0;  // 0: not chosen
}

int thread_count() {
  static const int as_found = default_thread_count();
  return g_thread_count > 0 ? g_thread_count : as_found;
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
  const int within = ThreadTeam::current();
  const bool shared = threads > 1 && within < 0 && task_count <= ThreadTeam::kMostTasks;
  if (shared && ThreadTeam::get().run(threads, task_count, context, call)) return;
  set_flush_to_zero();
  // A nested loop keeps the worker's own number, so that scratch indexed by it stays private.
  for (std::int64_t task = 0; task < task_count; ++task) call(context, task, std::max(within, 0));
}

}  // namespace parallel_detail
}  // namespace etc
