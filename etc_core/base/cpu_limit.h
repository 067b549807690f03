// A limit on the instruction sets that are used, to emulate a processor with fewer features: in tests, or to compare
// results between machines.
#pragma once

#include <string_view>

namespace etc {

// Each level includes those before it. avx512: with all AVX-512 extensions that the processor has.
enum class CpuLevel : int { avx2, avx512, amx };

// Throws UsageError for a name other than avx2, avx512, amx.
CpuLevel cpu_level_from_name(std::string_view name);

// The level that environment variable ETC_MAX_CPU names; without it the highest. The processor may have less.
CpuLevel cpu_level();

// Restricts oneDNN to cpu_level(), once per process; our own kernels ask cpu_features.h. Must be called before oneDNN's
// first use; registering kernels does so.
void apply_cpu_limit();

}  // namespace etc
