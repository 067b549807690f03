#include "etc_core/base/machine_share.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace etc {

namespace {

namespace fs = std::filesystem;

std::int64_t g_memory_limit = 0;  // set by the user; 0: none

// Where a hierarchy of groups is mounted: a line of mountinfo.
struct Mount {
  std::string root;  // the group that is seen at `point`
  fs::path point;
  std::string type, options;  // "cgroup2", ""; "cgroup", "rw,cpu,cpuacct"
};

// Blanks and similar characters of a path are written as \040 in mountinfo.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size();
    plain += octal ? static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8)) : text[i];
    if (octal) i += 3;
  }
  return plain;
}

bool lists(const std::string& words, const std::string& word) {
  return ("," + words + ",").find("," + word + ",") != std::string::npos;
}

std::vector<Mount> read_mounts(const fs::path& process) {
  std::vector<Mount> mounts;
  std::ifstream file(process / "mountinfo");
  for (std::string line; std::getline(file, line);) {
    // id parent device root point options… - type source options
    std::istringstream words(line);
    std::string id, parent, device, root, point, word, source;
    words >> id >> parent >> device >> root >> point;
    while (words >> word && word != "-") continue;
    Mount mount{unescaped(root), unescaped(point), "", ""};
    if (words >> mount.type >> source >> mount.options && mount.type.starts_with("cgroup")) mounts.push_back(mount);
  }
  return mounts;
}

// The folders of the process's group and of all groups that contain it, for a controller such as "memory". In version 1
// each controller has its own hierarchy, in version 2 there is only one. Innermost group first.
std::vector<fs::path> group_chain(const fs::path& process, const std::string& controller, bool version_1) {
  std::ifstream file(process / "cgroup");
  for (std::string line; std::getline(file, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (version_1 ? !lists(controllers, controller) : !controllers.empty()) continue;
    for (const Mount& mount : read_mounts(process)) {
      if (version_1 ? mount.type != "cgroup" || !lists(mount.options, controller) : mount.type != "cgroup2") continue;
      // Within a container, path and root may be those of the host; then the mount point is the group itself.
      const fs::path below = fs::path(path).lexically_relative(mount.root);
      fs::path folder = mount.point;
      std::vector<fs::path> chain = {folder};
      if (below.empty() || *below.begin() == "..") return chain;
      for (const fs::path& part : below) {
        if (part != ".") chain.push_back(folder /= part);
      }
      return {chain.rbegin(), chain.rend()};
    }
  }
  return {};
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The smallest value that `limit` reads in the folders of a chain; values that are not positive are no limit.
std::optional<double> smallest(const std::vector<fs::path>& chain,
                               const std::function<double(const fs::path&)>& limit) {
  std::optional<double> least;
  for (const fs::path& folder : chain) {
    const double value = limit(folder);
    if (value > 0 && (!least || value < *least)) least = value;
  }
  return least;
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (a && b) return std::min(*a, *b);
  return a ? a : b;
}

// The number a file begins with; 0: none, as for "max".
double number_in(const fs::path& path) {
  return std::strtod(first_line(path).c_str(), nullptr);
}

}  // namespace

std::optional<std::int64_t> group_memory_limit(const fs::path& process) {
  constexpr double kNone = 0x1p62;  // version 1 writes a number near 2^63 where there is no limit
  const auto read = [](const char* name) {
    return [name](const fs::path& folder) { return number_in(folder / name); };
  };
  const auto limit = smaller(smallest(group_chain(process, "memory", false), read("memory.max")),
                             smallest(group_chain(process, "memory", true), read("memory.limit_in_bytes")));
  if (!limit || *limit >= kNone) return std::nullopt;
  return static_cast<std::int64_t>(*limit);
}

std::optional<double> group_processor_limit(const fs::path& process) {
  const auto version_2 = [](const fs::path& folder) {  // "150000 100000": microseconds of time in each period
    std::istringstream words(first_line(folder / "cpu.max"));
    double quota = 0, period = 0;
    return words >> quota >> period && period > 0 ? quota / period : 0;
  };
  const auto version_1 = [](const fs::path& folder) {
    const double period = number_in(folder / "cpu.cfs_period_us");
    return period > 0 ? number_in(folder / "cpu.cfs_quota_us") / period : 0;
  };
  return smaller(smallest(group_chain(process, "cpu", false), version_2),
                 smallest(group_chain(process, "cpu", true), version_1));
}

int usable_processors() {
  // A machine may have more processors than fit into a cpu_set_t of fixed size.
  int count = 0;
  for (int size = 1024; count == 0 && size <= 1 << 20; size *= 2) {
    cpu_set_t* const set = CPU_ALLOC(size);
    if (set == nullptr) break;
    if (::sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) == 0) count = CPU_COUNT_S(CPU_ALLOC_SIZE(size), set);
    CPU_FREE(set);
  }
  if (count == 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (const auto quota = group_processor_limit())
    count = std::min(count, std::max(1, static_cast<int>(std::ceil(*quota))));
  return count;
}

std::int64_t usable_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  std::int64_t bytes = pages > 0 && size > 0 ? static_cast<std::int64_t>(pages) * size : 0;
  for (const std::int64_t limit : {group_memory_limit().value_or(0), g_memory_limit}) {
    if (limit > 0 && (bytes == 0 || limit < bytes)) bytes = limit;
  }
  return bytes;
}

void limit_usable_memory(std::int64_t bytes) {
  g_memory_limit = bytes;
}

int default_thread_count() {
  const char* const chosen = std::getenv("OMP_NUM_THREADS");
  const long count = chosen != nullptr ? std::strtol(chosen, nullptr, 10) : 0;  // of "4,2" the first
  return count > 0 && count < 1 << 16 ? static_cast<int>(count) : usable_processors();
}

}  // namespace etc
