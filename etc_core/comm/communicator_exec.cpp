// The program that users call is linked without MPI, because MPI's libraries would add some milliseconds to every
// start. If it is started as one of several processes, PROGRAM executes PROGRAM_mpi, which lies beside it and is linked
// with MPI, with the same arguments.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/comm/launch.h"

namespace etc {

std::unique_ptr<Communicator> join_processes() {
  const std::string other = std::filesystem::read_symlink("/proc/self/exe").string() + "_mpi";
  if (!std::filesystem::exists(other)) {
    fail("etc",
         "started as one of several processes, but the program was built without MPI ({} is not there): expected one "
         "process (or install libopenmpi-dev and openmpi-bin and configure with -DETC_MPI=ON)",
         other);
  }
  std::string line = read_file("/proc/self/cmdline");  // arguments, each terminated by a zero byte
  std::vector<char*> words;
  for (std::size_t at = 0; at < line.size(); at += std::strlen(line.data() + at) + 1) words.push_back(line.data() + at);
  words.push_back(nullptr);
  ::execv(other.c_str(), words.data());
  fail("etc", "{} cannot be run: {}", other, std::strerror(errno));
}

}  // namespace etc
