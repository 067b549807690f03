#include "etc_core/base/parallel.h"

#include <atomic>
#include <vector>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("every task runs exactly once for 1, 2 and 4 threads", "[base][threads]") {
  for (int threads : {1, 2, 4}) {
    set_thread_count(threads);
    std::vector<std::atomic<int>> runs(1000);
    parallel_for(1000, [&](std::int64_t task, int thread) {
      if (thread < 0 || thread >= threads) fail("test", "thread {} of {}", thread, threads);
      ++runs[static_cast<std::size_t>(task)];
    });
    for (const auto& count : runs) REQUIRE(count == 1);
  }
  set_thread_count(2);
}

TEST_CASE("an exception in a task reaches the caller", "[base][threads]") {
  set_thread_count(2);
  REQUIRE_THROWS_WITH(parallel_for(100,
                                   [](std::int64_t task) {
                                     if (task == 7) fail("task", "number {}", task);
                                   }),
                      "task: number 7");
}

TEST_CASE("a loop inside a task runs in that task's thread", "[base][threads]") {
  set_thread_count(2);
  std::atomic<int> wrong{0}, runs{0};
  parallel_for(4, [&](std::int64_t, int outer) {
    parallel_for(8, [&](std::int64_t, int inner) {
      ++runs;
      if (inner != outer) ++wrong;
    });
  });
  REQUIRE(runs == 32);
  REQUIRE(wrong == 0);
}
