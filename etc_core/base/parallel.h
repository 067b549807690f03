// Parallel loops over tasks on the thread pool (thread_team.h).
//
// The invariant that gives equal bits for any thread count: WHAT is a task (its bounds, its order of summation) is
// decided by the caller from sizes alone; threads only decide WHO runs it. Never derive a partition from
// thread_count(), never accumulate floats into memory that two tasks share.
#pragma once

#include <cstdint>
#include <type_traits>

namespace etc {

// Number of threads loops run on: set_thread_count, else default_thread_count (machine_share.h).
int thread_count();
void set_thread_count(int count);  // count >= 1

// Flush-to-zero and denormals-are-zero on the calling thread; parallel_for does it in every worker.
void set_flush_to_zero();

namespace parallel_detail {
void run(std::int64_t task_count, void* context, void (*call)(void* context, std::int64_t task, int thread));
}

// Calls body(task) or body(task, thread) for task = 0 … task_count-1, each once, in any order, on several threads
// (0 <= thread < thread_count(): for scratch). Tasks are handed out one at a time. The first exception is rethrown
// here; tasks not yet started are then skipped. A call inside a task, or beside another thread's loop, runs serially.
template <typename Body>
void parallel_for(std::int64_t task_count, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  parallel_detail::run(task_count, const_cast<void*>(static_cast<const void*>(&body)),
                       [](void* context, std::int64_t task, int thread) {
                         if constexpr (std::is_invocable_v<Plain&, std::int64_t, int>) {
                           (*static_cast<Plain*>(context))(task, thread);
                         } else {
                           (*static_cast<Plain*>(context))(task);
                         }
                       });
}

}  // namespace etc
