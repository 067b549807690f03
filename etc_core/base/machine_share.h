// The processors and the memory of the machine that this process may use, limited by its affinity and control groups.
//
// A container's limits are those of its control groups, of version 1 or 2. Groups are nested, and the smallest limit of
// the chain counts. Groups above the container's own root cannot be seen from within and are not needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace etc {

// Limits of the control groups listed in the files cgroup and mountinfo of `process`, a folder of /proc. nullopt: no
// visible limit.
std::optional<std::int64_t> group_memory_limit(const std::filesystem::path& process = "/proc/self");  // bytes
std::optional<double> group_processor_limit(const std::filesystem::path& process = "/proc/self");     // processors

// Processors this process may use at a time, at least 1: those of its affinity, at most the quota of its groups,
// rounded up (with a quota of 1.5, a single thread would leave a third unused).
int usable_processors();

// Bytes of memory this process may use: the machine's memory, at most the limits of its groups and of
// limit_usable_memory(); 0: not known.
std::int64_t usable_memory();

// A limit set by the user. Caches that choose their size by the usable memory respect it.
void limit_usable_memory(std::int64_t bytes);

// The default number of threads: OMP_NUM_THREADS, else the usable processors.
int default_thread_count();

}  // namespace etc
