// Waiting for other processes without taking processor time from them.
#pragma once

#include <sched.h>

#include <chrono>
#include <thread>

namespace etc {

// Waits until holds() is true: polls with sched_yield() for 20 ms, then every 50 microseconds.
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
