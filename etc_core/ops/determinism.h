// How strict reproducibility is on devices whose libraries choose the order of summation by the sizes of a call.
//
//   run      the same bits from run to run on one device model, toolkit and batch
//   strict   a row of a dense layer also has the same bits whatever the other rows and their number: an example's
//            forward pass and loss are the same alone and in any batch
// The CPU's kernels are always strict (README.md, "Equal bits").
#pragma once

#include <string>

namespace etc::ops {

enum class Determinism : int { run, strict };

// "run" or "strict". Throws UsageError for any other name.
Determinism determinism_of(const std::string& name);

// Applies to the whole process; call before anything is computed. The default is run.
void set_determinism(Determinism determinism);
Determinism determinism();

}  // namespace etc::ops
