#include "etc_core/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "etc_core/base/error.h"

namespace etc {

namespace {

#if defined(__x86_64__)
// Bits of EDX of CPUID leaf 7.
constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;

bool has_amx(unsigned bits) {
  if (cpu_level() < CpuLevel::amx) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & bits) != bits) return false;
  // Tile registers are large, so Linux enables them only on request: ARCH_REQ_XCOMP_PERM for XFEATURE_XTILEDATA.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

}  // namespace

void require_supported_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  require_instructions(__builtin_cpu_supports("avx2") != 0, __builtin_cpu_supports("fma") != 0);
#endif
}

void require_instructions(bool avx2, bool fma) {
  if (avx2 && fma) return;
  fail("cpu",
       "this processor has no AVX2 with FMA: expected at least x86-64-v3 (Intel Haswell 2013, AMD Excavator "
       "2015 or newer); run on such a machine");
}

std::string instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  std::string name = "x86-64 avx2";
  if (cpu_level() < CpuLevel::avx512) return name;
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

bool cpu_has_avx512_vectors() {
#if defined(__x86_64__)
  static const bool all_parts = [] {
    __builtin_cpu_init();
    return cpu_level() >= CpuLevel::avx512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }();
  return all_parts;
#else
  return false;
#endif
}

bool cpu_has_amx(ComputeType type) {
#if defined(__x86_64__)
  static const bool bf16 = has_amx(kAmxTile | kAmxBf16), int8 = has_amx(kAmxTile | kAmxInt8);
  return type == ComputeType::bf16 ? bf16 : type == ComputeType::int8 && int8;
#else
  return false;
#endif
}

bool cpu_has_avx512(ComputeType type) {
  if (type == ComputeType::fp32) return false;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (cpu_level() < CpuLevel::avx512) return false;
  return type == ComputeType::bf16 ? __builtin_cpu_supports("avx512bf16") : __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

bool cpu_offers(ComputeType type) {
  return type != ComputeType::bf16 || cpu_has_amx(type) || cpu_has_avx512(type);
}

}  // namespace etc
