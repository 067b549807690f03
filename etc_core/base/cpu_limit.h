// A limit on the instructions that are used, so that a processor can stand in for one that has fewer: in tests, or to
// compare results between machines.
#pragma once

#include <string_view>

namespace etc {

// Each with those before it. avx512: with whatever parts of it the processor has.
enum class CpuLevel : int { avx2, avx512, amx };

// Throws UsageError for a name that is none of avx2, avx512, amx.
CpuLevel cpu_level_from_name(std::string_view name);

// The level that environment variable ETC_MAX_CPU names; without it the highest. The processor may have less.
CpuLevel cpu_level();

// Makes Highway and oneDNN keep to cpu_level(), once per process. To be called before their first use; registering
// kernels does it.
void apply_cpu_limit();

}  // namespace etc
