#include "etc_core/base/cpu_features.h"

#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("a processor without AVX2 or FMA is refused with what is needed", "[base]") {
  const auto message = Catch::Contains("cpu: this processor has no AVX2 with FMA: expected at least x86-64-v3");
  CHECK_THROWS_WITH(require_instructions(false, true), message);
  CHECK_THROWS_WITH(require_instructions(true, false), message);
  require_instructions(true, true);
}
