// Inputs for measurements, whose numbers mean nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/etc_input.h"

namespace etc {

// One example of L random tokens in blocks of tokens_per_global, each with its global token. Equal arguments give equal
// inputs.
EtcInput random_input(const EtcConfig& model, std::int64_t length, std::int64_t tokens_per_global);

// The same for a batch with an example for each length; without ordinals of examples.
EtcInput random_batch(const EtcConfig& model, const std::vector<std::int64_t>& lengths, std::int64_t tokens_per_global);

}  // namespace etc
