// What of the machine this process may use: processors and memory, less what its affinity and its control groups leave.
//
// A container's limits are those of its control groups, of version 1 or 2. A group lies in others, and the smallest
// limit of the chain counts; what lies above the container's own root cannot be seen from within, nor need it be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace etc {

// Of the control groups that `process`, a folder of /proc, tells of in its files cgroup and mountinfo. nullopt: no
// limit that can be seen.
std::optional<std::int64_t> group_memory_limit(const std::filesystem::path& process = "/proc/self");  // bytes
std::optional<double> group_processor_limit(const std::filesystem::path& process = "/proc/self");     // processors

// Processors this process may use at a time, at least 1: those of its affinity, at most the quota of its groups rounded
// up (of a quota of 1.5, one thread would leave a third).
int usable_processors();

// Bytes of memory this process may use: the machine's, at most the limit of its groups and what limit_usable_memory()
// said; 0: not known.
std::int64_t usable_memory();

// A user's own limit. What chooses its size by the memory there is (caches) then chooses by this.
void limit_usable_memory(std::int64_t bytes);

// Threads to compute with where nobody chose: OMP_NUM_THREADS, else the usable processors.
int default_thread_count();

}  // namespace etc
