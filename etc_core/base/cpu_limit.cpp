#include "etc_core/base/cpu_limit.h"

#include <cstdlib>

#include "etc_core/base/error.h"

namespace etc {

CpuLevel cpu_level_from_name(std::string_view name) {
  if (name == "avx2") return CpuLevel::avx2;
  if (name == "avx512") return CpuLevel::avx512;
  if (name == "amx") return CpuLevel::amx;
  fail_usage("ETC_MAX_CPU", "expected avx2, avx512 or amx, got {}", name);
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const char* name = std::getenv("ETC_MAX_CPU");
    return name == nullptr ? CpuLevel::amx : cpu_level_from_name(name);
  }();
  return level;
}

void apply_cpu_limit() {
  static const bool applied = [] {
    if (cpu_level() == CpuLevel::amx) return true;
    // oneDNN reads this variable at its first use. A limit that is already set is not overwritten.
    ::setenv("DNNL_MAX_CPU_ISA", cpu_level() == CpuLevel::avx512 ? "AVX512_CORE_BF16" : "AVX2", 0);
    return true;
  }();
  static_cast<void>(applied);
}

}  // namespace etc
