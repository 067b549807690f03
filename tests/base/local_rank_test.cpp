// The device that a process takes: its index on the machine from the launchers' variables.
#include "etc_core/base/local_rank.h"

#include <array>

#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("a process's number on its machine is what its launcher says", "[base]") {
  const std::array<const char*, 4> names = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                            "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
  for (const char* name : names) ::unsetenv(name);
  CHECK(local_rank() == 0);
  for (const char* name : names) {
    CAPTURE(name);
    ::setenv(name, "3", 1);
    CHECK(local_rank() == 3);
    ::unsetenv(name);
  }
  // mpirun within a Slurm job: Slurm started mpirun, and all its processes inherit mpirun's SLURM_LOCALID.
  ::setenv("SLURM_LOCALID", "0", 1);
  ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "2", 1);
  CHECK(local_rank() == 2);
  ::unsetenv("SLURM_LOCALID");
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
}
