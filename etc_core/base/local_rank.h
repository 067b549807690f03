// The index of this process among those that a launcher (mpirun, srun) started on this machine; it selects the device.
#pragma once

#include <cstdlib>
#include <initializer_list>

namespace etc {

// 0, 1, …; 0 also for a process that no launcher started.
inline int local_rank() {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  }
  return 0;
}

}  // namespace etc
