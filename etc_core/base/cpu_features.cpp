#include "etc_core/base/cpu_features.h"

#include <cstdlib>

#include "etc_core/base/error.h"

namespace etc {

void require_supported_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // ETC_PRETEND_NO_AVX2 lets a test see this message on a machine that has AVX2.
  const bool pretend = std::getenv("ETC_PRETEND_NO_AVX2") != nullptr;
  if (pretend || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    fail("cpu",
         "this processor has no AVX2 with FMA: expected at least x86-64-v3 (Intel Haswell 2013, AMD Excavator "
         "2015 or newer); run on such a machine");
  }
#endif
}

std::string instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  std::string name = "x86-64 avx2";
  if (__builtin_cpu_supports("avx512f")) name += " avx512f";
  if (__builtin_cpu_supports("avx512bw")) name += " avx512bw";
  if (__builtin_cpu_supports("avx512vl")) name += " avx512vl";
  if (__builtin_cpu_supports("avx512dq")) name += " avx512dq";
  if (__builtin_cpu_supports("avx512vnni")) name += " avx512vnni";
  if (__builtin_cpu_supports("avx512bf16")) name += " avx512bf16";
  return name;
#else
  return "aarch64";
#endif
}

}  // namespace etc
