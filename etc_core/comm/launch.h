// How this process was started: alone, or by a launcher (mpirun, srun) as one of several.
#pragma once

#include <memory>

#include "etc_core/comm/communicator.h"

namespace etc {

// Whether a launcher says, in the environment, that it started more than this process. Looks at nothing else: a process
// that is alone never touches MPI.
bool launched_with_others();

// The communicator of a process that launched_with_others(). While it lives, the end of another process ends this one
// (fault_watch.h). A program that is not linked with MPI becomes the one that is, and so begins again with its first
// line (communicator_exec.cpp); throws Error when there is none.
std::unique_ptr<Communicator> join_processes();

}  // namespace etc
