// The threads that parallel_for runs on: the caller and workers that wait for its loops.
//
// The promise: who waits takes nothing from others. A worker looks for the next loop for a few microseconds, in which
// loops of one operator follow each other, or for a millisecond where no other program wants its
// processor, and then sleeps until it is woken; so does the caller at the end of a loop.
// And nobody waits for a worker that has not begun: the caller takes every task that no worker has taken. OpenMP's own
// team, which stood here before, keeps neither: its threads spin for milliseconds at barriers that all of them have to
// reach, and with other programs on the machine two threads took 25 times as long as one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "etc_core/base/team_size.h"

namespace etc {

// How a waiting thread spends its time before it sleeps.
struct WaitSpins {
  std::int64_t looks = 0;  // times it looks for what it waits for: some 10 to 40 nanoseconds each
  bool longer = false;     // then a millisecond more, unless other programs want its processor
  bool operator==(const WaitSpins&) const = default;
};

// That of a team of `threads`: what the user's GOMP_SPINCOUNT says, else OMP_WAIT_POLICY (active: looks for ever;
// passive: none), else none where there are fewer processors than threads, else a few microseconds and longer.
// `spin_count` and `wait_policy` are the variables' values, null where unset.
WaitSpins spins_before_sleep(int threads, int processors, const char* spin_count, const char* wait_policy);

class ThreadTeam {
 public:
  using Call = void (*)(void* context, std::int64_t task, int thread);

  // The one of this process. A forked child has one of its own, without workers yet.
  static ThreadTeam& get();

  // Calls call(context, task, thread) for every task on up to `threads` (>= 2) threads, as parallel_for promises;
  // false, and nothing called, while the team runs another caller's loop. Short loops run on fewer threads where that
  // is faster (team_size.h), unless OMP_DYNAMIC is set to false.
  bool run(int threads, std::int64_t tasks, void* context, Call call);

  // Loops of more tasks are not for the team.
  static constexpr std::int64_t kMostTasks = (std::int64_t{1} << 32) - 1;

  // Number of the calling thread in the loop it runs a task of; -1 outside of loops.
  static int current();

 private:
  // What the workers look at, in one word: the loop's number, whether it may still be joined, how many workers have
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

  std::atomic_flag busy_;  // a loop is under way
  int workers_ = 0;        // of the thread whose loop it is
  TeamSize size_;          // likewise

  // The loop; written while no worker is in it.
  std::int64_t tasks_ = 0;
  void* context_ = nullptr;
  Call call_ = nullptr;
  std::atomic<int> most_workers_{0};
  std::atomic<std::int64_t> looks_{0};  // the two of WaitSpins
  std::atomic<bool> longer_{false};
  // The tasks that nobody has taken of one thread's share: the first, and in the upper half the one after the last.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> tasks{0};
  };
  std::vector<Share> shares_;
  int sharing_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;

  std::atomic<std::uint64_t> state_{0};
  std::atomic<int> sleeping_{0};  // workers
  std::mutex mutex_;              // of falling asleep
  std::condition_variable loop_, left_;
};

}  // namespace etc
