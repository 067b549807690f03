// Generated texts for `etc sample`.
#pragma once

#include "tasks/sample.h"

namespace etc::lm {

// Options and writer, for the row of the task in tasks/registry.cpp.
const SampleKind& sample_kind();

}  // namespace etc::lm
