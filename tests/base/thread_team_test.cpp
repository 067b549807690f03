// The thread pool waits without using processor time, whatever loops came before.
#include "etc_core/base/thread_team.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <thread>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/run_delay.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

namespace {

double processor_seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// CPU time of all other threads while `work` runs.
template <typename Work>
double seconds_of_others(const Work& work) {
  const auto others = [] {
    return processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - processor_seconds(CLOCK_THREAD_CPUTIME_ID);
  };
  const double before = others();
  work();
  return others() - before;
}

bool waiting_is_set() {
  const bool set = std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr;
  if (set) test::skip("the environment says how threads wait");
  return set;
}

void compute_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) continue;
}

}  // namespace

TEST_CASE("threads that wait for a loop use no processor time", "[base][threads]") {
  if (waiting_is_set()) return;
  set_thread_count(4);
  std::atomic<int> runs{0};
  // 20 loops, each followed by 10 ms of work on one thread: spinning workers would use 0.2 s and more.
  const double waiting = seconds_of_others([&] {
    for (int i = 0; i < 20; ++i) {
      parallel_for(8, [&](std::int64_t) { ++runs; });
      compute_for(std::chrono::milliseconds(10));
    }
  });
  set_thread_count(2);
  CHECK(runs == 160);
  CHECK(waiting < 0.02);
}

TEST_CASE("the caller that waits for others' tasks soon leaves the processor", "[base][threads]") {
  if (waiting_is_set()) return;
  set_thread_count(2);
  const double before = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < 5; ++i) {
    // The thread that runs task 1 sleeps; the other one has nothing to do.
    parallel_for(2, [](std::int64_t task) {
      if (task == 1) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    });
  }
  // Spinning threads would use 0.2 s; each of the two may spin for a millisecond, five times.
  CHECK(processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - before < 0.05);
}

TEST_CASE("nobody waits for a worker that has not begun", "[base][threads]") {
  // Far more threads than needed, for tasks that the caller alone finishes almost at once.
  set_thread_count(64);
  std::atomic<std::int64_t> runs{0};
  for (int i = 0; i < 2000; ++i) parallel_for(64, [&](std::int64_t) { ++runs; });
  set_thread_count(2);
  CHECK(runs == 2000 * 64);
}

TEST_CASE("loops of several callers at once are all run", "[base][threads]") {
  set_thread_count(3);
  std::atomic<std::int64_t> runs{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::atomic<int> mine{0};
        try {
          parallel_for(7, [&](std::int64_t task, int thread) {
            if (thread < 0 || thread >= 3) ++wrong;
            ++mine;
            if (i % 50 == 0 && task == 6) fail("task", "six");
          });
          if (i % 50 == 0 || mine != 7) ++wrong;
        } catch (const Error&) {
          if (i % 50 != 0) ++wrong;
        }
        runs += mine;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  set_thread_count(2);
  CHECK(wrong == 0);
  CHECK(runs > 4 * 490 * 7);
}

TEST_CASE("a forked child computes with workers of its own", "[base]") {
  set_thread_count(2);
  parallel_for(8, [](std::int64_t) {});
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    std::atomic<int> runs{0};
    for (int i = 0; i < 100; ++i) parallel_for(8, [&](std::int64_t) { ++runs; });
    ::_exit(runs == 800 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a user's word on waiting counts, else it is short", "[base]") {
  constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max();
  const WaitSpins usual = spins_before_sleep(2, 2, nullptr, nullptr);
  CHECK(usual.longer);
  CHECK(usual.looks > 0);
  CHECK(usual.looks <= 10'000);
  CHECK(spins_before_sleep(3, 2, nullptr, nullptr) == WaitSpins{0, false});
  CHECK(spins_before_sleep(2, 2, nullptr, "passive") == WaitSpins{0, false});
  CHECK(spins_before_sleep(3, 2, nullptr, "ACTIVE") == WaitSpins{kForEver, false});
  CHECK(spins_before_sleep(2, 2, "300k", "passive") == WaitSpins{300'000, false});
  CHECK(spins_before_sleep(2, 2, "0", "active") == WaitSpins{0, false});
  CHECK(spins_before_sleep(2, 2, "infinity", nullptr) == WaitSpins{kForEver, false});
  CHECK(spins_before_sleep(2, 2, "99999999T", nullptr) == WaitSpins{kForEver, false});
  for (const char* not_a_count : {"", "many", "-3", "3x", "3kk"}) {
    CHECK(spins_before_sleep(2, 2, not_a_count, nullptr) == usual);
  }
}

TEST_CASE("a thread that often waits for a processor is told so for a while", "[base]") {
  constexpr std::int64_t kStep = RunDelay::kWindow;
  RunDelay idle;
  std::int64_t now = 7 * kStep;
  CHECK_FALSE(idle.high(now, 3 * kStep));  // delay before the first call does not count
  for (int i = 1; i < 10; ++i) CHECK_FALSE(idle.high(now += kStep, 3 * kStep + i * (kStep / 20)));

  RunDelay crowded;
  now = 0;
  CHECK_FALSE(crowded.high(now, 0));
  CHECK_FALSE(crowded.high(now += kStep / 2, kStep / 2));  // the window has not ended yet
  CHECK(crowded.high(now += kStep / 2, kStep / 2));
  const std::int64_t seen = now;
  while (now + kStep < seen + RunDelay::kMemory) CHECK(crowded.high(now += kStep, kStep / 2));
  CHECK_FALSE(crowded.high(seen + RunDelay::kMemory, kStep / 2));
}
