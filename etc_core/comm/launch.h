// How this process was started: alone, or by a launcher (mpirun, srun) as one of several.
#pragma once

#include <memory>

#include "etc_core/comm/communicator.h"

namespace etc {

// Whether the environment says that a launcher started more than one process. Looks at nothing else: a single process
// never touches MPI.
bool launched_with_others();

// The communicator of a process for which launched_with_others() is true. While it lives, the failure of another
// process ends this one (fault_watch.h). A program that is not linked with MPI executes the one that is, which starts
// again at main() (communicator_exec.cpp); throws Error when there is none.
std::unique_ptr<Communicator> join_processes();

}  // namespace etc
