#include "etc_core/comm/launch.h"

#include <cstdlib>

namespace etc {

bool launched_with_others() {
  // Variables of Open MPI, MPICH and MPICH's derivatives; their value is 1 under `mpirun -n 1`.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    if (const char* count = std::getenv(name)) return std::atoi(count) > 1;
  }
  // srun with PMIx gives the rank in PMIX_RANK and the step's number of tasks in a variable of Slurm.
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return std::getenv("PMIX_RANK") != nullptr && tasks != nullptr && std::atoi(tasks) > 1;
}

}  // namespace etc
