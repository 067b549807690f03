#include "etc_core/base/cpu_features.h"

#include "etc_core/base/cpu_limit.h"
#include "hwy/targets.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("a processor without AVX2 or FMA is refused with what is needed", "[base]") {
  const auto message = Catch::Contains("cpu: this processor has no AVX2 with FMA: expected at least x86-64-v3");
  CHECK_THROWS_WITH(require_instructions(false, true), message);
  CHECK_THROWS_WITH(require_instructions(true, false), message);
  require_instructions(true, true);
}

// Chosen by the first call, among threads, some tasks ran with what the processor has instead of what is allowed.
TEST_CASE("instructions are chosen when the limit is applied, and once", "[base]") {
  apply_cpu_limit();
  CHECK(hwy::GetChosenTarget().IsInitialized());
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::avx2) CHECK((hwy::SupportedTargets() & (HWY_AVX2 - 1)) == 0);
#endif
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  apply_cpu_limit();  // another model is made, beside one that computes
  CHECK(hwy::GetChosenTarget().IsInitialized());
}
