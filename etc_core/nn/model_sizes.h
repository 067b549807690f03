// Limits of the sizes in a configuration, which may come from a stranger's file: a product of two sizes, of the number
// of layers and of the bytes of a number stays far below the limit of int64.
#pragma once

#include <cstdint>

#include "etc_core/nn/encoder_config.h"

namespace etc {

inline constexpr std::int64_t kMaxModelSize = 1 << 24;
inline constexpr std::int64_t kMaxModelLayers = 1000;

// Throws UsageError "config: …" unless the hidden size can be divided among the heads, where no head size is given, and
// A = N·D, the width of all heads together, is at most kMaxModelSize. The sizes themselves must have been checked.
void check_heads(const EncoderConfig& config);

}  // namespace etc
