// WikiHop examples in memory for tests: the worked layout of task-wikihop 2.7, and small random ones to train on.
#pragma once

#include <cstdint>

#include "data/loader/loader.h"
#include "etc_core/nn/etc_config.h"

namespace etc::test {

// Two candidates (norway, new york), two query tokens, two documents: L = 14, G = 9; every feature of the schema.
// The ordinal is also in its id, "worked_<ordinal>".
data::LoadedExample worked_example(std::int64_t ordinal);

// Two layers, H = 16, two heads, radius 4, k = 4, no dropout, room for 64 token ids.
EtcConfig tiny_model();

}  // namespace etc::test
