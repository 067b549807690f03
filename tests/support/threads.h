// Runs the same work on several threads at once.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace etc::test {

// Calls `holds` `times` times on each of four threads; returns how often it was false.
inline int failures_on_threads(int times, const std::function<bool()>& holds) {
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&holds, &count, times] {
      for (int i = 0; i < times; ++i) count += holds() ? 0 : 1;
    });
  }
  int all = 0;
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads[t].join();
    all += wrong[t];
  }
  return all;
}

}  // namespace etc::test
