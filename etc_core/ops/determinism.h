// How far equal bits go on devices whose libraries choose by the sizes of a call how they sum.
//
//   run      the same bits from run to run on one device model, toolkit and batch
//   strict   a row of a dense layer also has the same bits whatever the other rows and their number: an example's
//            forward pass and loss are the same alone and in any batch
// The CPU's kernels are always strict (README.md, "Equal bits").
#pragma once

#include <string>

namespace etc::ops {

enum class Determinism : int { run, strict };

// "run", "strict". Throws UsageError for another word.
Determinism determinism_of(const std::string& name);

// For the whole process, before anything is computed. run unless set.
void set_determinism(Determinism determinism);
Determinism determinism();

}  // namespace etc::ops
