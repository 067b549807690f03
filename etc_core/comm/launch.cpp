#include "etc_core/comm/launch.h"

#include <cstdlib>

namespace etc {

bool launched_with_others() {
  // Open MPI; MPICH and what is made of it; their counts say 1 under `mpirun -n 1`.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    if (const char* count = std::getenv(name)) return std::atoi(count) > 1;
  }
  // Slurm's own way of starting MPI says the count of the step beside the rank.
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return std::getenv("PMIX_RANK") != nullptr && tasks != nullptr && std::atoi(tasks) > 1;
}

}  // namespace etc
