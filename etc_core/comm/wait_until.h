// Waiting for other processes without taking the processor from them.
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

namespace etc {

// Until it holds: asked at first at once, then now and then.
template <typename Condition>
void wait_until(const Condition& holds) {
  using Clock = std::chrono::steady_clock;
  const auto patient = Clock::now() + std::chrono::milliseconds(20);
  while (!holds()) {
    if (Clock::now() < patient) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace etc
