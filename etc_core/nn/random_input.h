// An input for measurements, whose numbers mean nothing.
#pragma once

#include <cstdint>

#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/etc_input.h"

namespace etc {

// One example of L random tokens in blocks of tokens_per_global, each with its global token. Equal arguments give equal
// inputs.
EtcInput random_input(const EtcConfig& model, std::int64_t length, std::int64_t tokens_per_global);

}  // namespace etc
