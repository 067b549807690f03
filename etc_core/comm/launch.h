// How this process was started: alone, or by a launcher (mpirun, srun) as one of several.
#pragma once

#include <memory>

#include "etc_core/comm/communicator.h"

namespace etc {

// Whether a launcher says, in the environment, that it started more than this process. Looks at nothing else: a process
// that is alone never touches MPI.
bool launched_with_others();

// The communicator of a process that launched_with_others(). Throws Error when this program was built without MPI.
// While it lives, the end of another process ends this one (fault_watch.h).
std::unique_ptr<Communicator> join_processes();

}  // namespace etc
