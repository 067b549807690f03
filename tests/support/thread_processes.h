// Several "processes" that are threads of this one: what is said of processes in general, without a launcher.
#pragma once

#include <functional>

#include "etc_core/comm/communicator.h"

namespace etc::test {

// Calls body once for every rank, each on a thread of its own with a communicator of `size` processes. Rethrows the
// first exception of any rank, once all have come to their end; ranks that wait for others then throw as well.
void run_processes(int size, const std::function<void(Communicator& processes)>& body);

}  // namespace etc::test
