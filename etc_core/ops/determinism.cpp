#include "etc_core/ops/determinism.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"  // suggestion
#include "etc_core/base/words.h"

namespace etc::ops {

namespace {
Determinism g_determinism = Determinism::run;
}

Determinism determinism_of(const std::string& name) {
  if (name == "run") return Determinism::run;
  if (name == "strict") return Determinism::strict;
  fail_usage("--deterministic", "expected run or strict, got {}{}", name, suggestion(name, {"run", "strict"}));
}

void set_determinism(Determinism determinism) {
  g_determinism = determinism;
}

Determinism determinism() {
  return g_determinism;
}

}  // namespace etc::ops
