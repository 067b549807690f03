// The assignment of rows to examples, and the keys of their dropout.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/autograd/functions.h"
#include "etc_core/nn/encoder_input.h"

namespace etc::feed {

// offsets [B+1] as given and the examples' ordinals [B]; without ordinals the index within the batch is the key of
// dropout.
std::shared_ptr<const RaggedRows> dropout_rows(const EncoderInput& input, std::vector<std::int64_t> offsets);

}  // namespace etc::feed
