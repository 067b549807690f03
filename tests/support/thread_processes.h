// Simulates several processes by threads, so that multi-process code can be tested without a launcher.
#pragma once

#include <functional>

#include "etc_core/comm/communicator.h"

namespace etc::test {

// Calls body once for every rank, each on a thread of its own with a communicator of `size` ranks. If a rank throws, ranks
// that wait for others throw as well; the first exception is rethrown when all threads have ended.
void run_processes(int size, const std::function<void(Communicator& processes)>& body);

}  // namespace etc::test
