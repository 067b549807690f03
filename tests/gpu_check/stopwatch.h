// Wall time of work on the device, measured by the host between two synchronisations.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "etc_core/base/device_state.h"

namespace etc::gpu_check {

// Median of `repeats` calls after two untimed ones.
template <typename Run>
double seconds_of(int repeats, const Run& run) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats + 2; ++i) {
    wait_for(Device::cuda);
    const auto start = std::chrono::steady_clock::now();
    run();
    wait_for(Device::cuda);
    if (i > 1) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace etc::gpu_check
