// The thread pool behind parallel_for: the calling thread and worker threads that wait for its loops.
//
// Guarantee 1: a waiting thread must not take processor time from other programs. A worker spin-waits for the next loop
// for a few microseconds, because loops of one operator follow each other closely, or for a millisecond if no other
// program wants its processor. Then it sleeps until it is woken. The caller does the same at the end of a loop.
// Guarantee 2: no loop waits for a worker that has not started; the caller runs every task that no worker has taken.
// OpenMP's thread pool, which was used before, guarantees neither: its threads spin for milliseconds at barriers that
// all of them have to reach, and with other programs on the machine two threads took 25 times as long as one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "etc_core/base/team_size.h"

namespace etc {

// How long a waiting thread spins before it sleeps.
struct WaitSpins {
  std::int64_t looks = 0;  // number of polls, some 10 to 40 nanoseconds each
  bool longer = false;     // then spin a millisecond more, unless other programs want its processor
  bool operator==(const WaitSpins&) const = default;
};

// The setting for a pool of `threads`: the user's GOMP_SPINCOUNT, else OMP_WAIT_POLICY (active: spins for ever;
// passive: does not spin), else no spinning if there are fewer processors than threads, else a few microseconds and
// `longer`. `spin_count` and `wait_policy` are the variables' values, null where unset.
WaitSpins spins_before_sleep(int threads, int processors, const char* spin_count, const char* wait_policy);

class ThreadTeam {
 public:
  using Call = void (*)(void* context, std::int64_t task, int thread);

  // The pool of this process. A forked child gets a new one, without workers yet.
  static ThreadTeam& get();

  // Calls call(context, task, thread) for every task on up to `threads` (>= 2) threads, as parallel_for guarantees.
  // Returns false without calling anything while the pool runs another caller's loop. Short loops run on fewer threads
  // where that is faster (team_size.h), unless OMP_DYNAMIC is set to false.
  bool run(int threads, std::int64_t tasks, void* context, Call call);

  // Loops of more tasks cannot run on the pool.
  static constexpr std::int64_t kMostTasks = (std::int64_t{1} << 32) - 1;

  // Index of the calling thread in the loop whose task it runs; -1 outside of loops.
  static int current();

 private:
  // The state that workers poll, in one word: the loop's number, whether workers may still join it, how many have
  // joined it and how many of these have not left it.
  static constexpr std::uint64_t kActive = 1, kJoined = 1 << 16, kOpen = std::uint64_t{1} << 32, kNumber = kOpen << 1;
  static constexpr std::uint64_t kCount = kJoined - 1;
  static constexpr int kHalf = 32;
  static constexpr std::uint64_t kFirst = (std::uint64_t{1} << kHalf) - 1;

  void run_on(int threads);
  void serve();
  std::uint64_t wait_for_loop(std::uint64_t seen);
  int join(std::uint64_t state);
  void leave();
  void share(int threads);
  std::int64_t take(int thread);
  void work(int thread);
  WaitSpins spins() const;
  void wait_for_workers();
  void grow(int workers);
  void wake(int workers);

  std::atomic_flag busy_;  // a loop is running
  int workers_ = 0;        // accessed only by the thread that runs the loop
  TeamSize size_;          // accessed only by the thread that runs the loop

  // The loop; written while no worker is in it.
  std::int64_t tasks_ = 0;
  void* context_ = nullptr;
  Call call_ = nullptr;
  std::atomic<int> most_workers_{0};
  std::atomic<std::int64_t> looks_{0};  // the two of WaitSpins
  std::atomic<bool> longer_{false};
  // The tasks of one thread's share that are not taken yet: the first in the lower half, the end in the upper half.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> tasks{0};
  };
  std::vector<Share> shares_;
  int sharing_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;

  std::atomic<std::uint64_t> state_{0};
  std::atomic<int> sleeping_{0};  // workers
  std::mutex mutex_;              // held while a thread goes to sleep
  std::condition_variable loop_, left_;
};

}  // namespace etc
