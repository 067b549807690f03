// The attention types and operators of ETC ("global-local attention"). Kernels do not include this file; another model
// declares its own operators in the same way.
#pragma once

#include <array>

#include "sparse/attention_types.h"

namespace etc::sparse {

// l: long tokens, g: global tokens. From queries to keys.
inline constexpr AttentionType kL2l{0, "l2l"}, kL2g{1, "l2g"}, kG2g{2, "g2g"}, kG2l{3, "g2l"};
inline constexpr std::array<AttentionType, 4> kEtcTypes{kL2l, kL2g, kG2g, kG2l};  // by index

// Every long token over its window (l2l) and all global tokens of its example (l2g).
inline constexpr AttentionOperator kLongAttention{
    "long_attention", "long_attention bf16",       "long_attention_backward",
    {kL2l, kL2g},     DropoutSite::long_attention, Partition::queries};

// Every global token over all global tokens (g2g) and all long tokens (g2l) of its example.
inline constexpr AttentionOperator kGlobalAttention{
    "global_attention", "global_attention bf16",       "global_attention_backward",
    {kG2g, kG2l},       DropoutSite::global_attention, Partition::keys};

}  // namespace etc::sparse
