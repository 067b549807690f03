#include "tests/tasks/processes/mpirun.h"

#include <unistd.h>

#include <map>
#include <sstream>

namespace etc::test {

namespace fs = std::filesystem;

bool have_mpirun() {
  if (std::string(ETC_MPIRUN).empty() || !fs::exists(ETC_MPIRUN)) {
    skip("no mpirun, or the program was built without MPI");
    return false;
  }
  return program().has_value();
}

Words several(int size, const Words& command) {
  // Tests may run as any user, and with more processes than processors. Processes are not bound, so the machine's topology
  // is not examined, nor networks, which takes a third of the time of a start.
  Words words = {"env", "HWLOC_COMPONENTS=no_os,stop", ETC_MPIRUN, "--allow-run-as-root", "--oversubscribe"};
  for (const char* word : {"--bind-to", "none", "--mca", "pml", "ob1", "-n"}) words.push_back(word);
  words.push_back(std::to_string(size));
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Result run_several(int size, const Words& command, const fs::path& folder) {
  const fs::path output = folder / "program";
  Child child(size == 1 ? command : several(size, command), output);
  const int code = child.wait();
  return {code, read_file(output.string() + ".out"), read_file(output.string() + ".err"), child.peak_bytes()};
}

namespace {

// The rank of a process from its environment; "" if it is not an MPI process or no longer exists.
std::string rank_of(const fs::path& process) {
  try {
    std::istringstream environment(read_file(process / "environ"));
    for (std::string entry; std::getline(environment, entry, '\0');) {
      constexpr std::string_view kName = "OMPI_COMM_WORLD_RANK=";
      if (entry.starts_with(kName)) return entry.substr(kName.size());
    }
  } catch (const std::exception&) {
  }
  return "";
}

// State and parent of a process from /proc; the state is 'Z' for a zombie and 'X' if the process does not exist.
struct Status {
  char state = 'X';
  pid_t parent = 0;
};

Status status_of(const fs::path& process) {
  Status status;
  try {
    const std::string text = read_file(process / "stat");
    std::istringstream words(text.substr(text.rfind(')') + 2));
    words >> status.state >> status.parent;
  } catch (const std::exception&) {
  }
  return status;
}

// Direct children of a process that have an MPI rank, by rank. Zombies and processes that the ranks start are left out.
std::map<int, pid_t> ranks_below(pid_t parent) {
  std::map<int, pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const Status status = status_of(entry.path());
    const std::string rank = status.parent == parent && status.state != 'Z' ? rank_of(entry.path()) : "";
    if (!rank.empty()) found[std::stoi(rank)] = std::stoi(name);
  }
  return found;
}

}  // namespace

std::vector<pid_t> processes_of(pid_t mpirun, int size) {
  std::map<int, pid_t> found;
  wait_for(20, [&] {
    found = ranks_below(mpirun);
    return static_cast<int>(found.size()) == size;
  });
  std::vector<pid_t> pids;
  for (const auto& [rank, pid] : found) pids.push_back(pid);
  return pids;
}

bool has_ended(pid_t pid) {
  const char state = status_of(fs::path("/proc") / std::to_string(pid)).state;
  return state == 'X' || state == 'Z';
}

}  // namespace etc::test
