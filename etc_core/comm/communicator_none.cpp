// Stands for MPI in a build without it (ETC_MPI=OFF, or CMake found none).
#include "etc_core/base/error.h"
#include "etc_core/comm/launch.h"

namespace etc {

std::unique_ptr<Communicator> join_processes() {
  fail("etc",
       "started as one of several processes, but this program was built without MPI: expected one process (or install "
       "libopenmpi-dev and openmpi-bin and configure with -DETC_MPI=ON)");
}

}  // namespace etc
