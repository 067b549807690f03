// The attention types and operators of an encoder-decoder: encoder self-attention, causal decoder self-attention, and
// attention of the decoder to the encoder's states, which is the cross attention of patterns/cross.h.
//
// Each of the three types carries its own scores (translation 2). Encoder and decoder number their layers separately
// and have separate running scores, so type indices need to be distinct only within the encoder and within the decoder.
#pragma once

#include "sparse/patterns/cross.h"

namespace etc::sparse {

inline constexpr AttentionType kEncoderSelf{0, "encoder_self"};
inline constexpr AttentionType kDecoderSelf{2, "decoder_self"};  // 0 and 1 are the types of kCrossAttention

// Tiles: build_self_tiles.
inline constexpr AttentionOperator kEncoderSelfAttention{
    "encoder_self_attention",          "encoder_self_attention bf16",
    "encoder_self_attention_backward", {kEncoderSelf, AttentionType{1, "none"}},
    DropoutSite::long_attention,       Partition::queries,
};

// Tiles: build_causal_tiles.
inline constexpr AttentionOperator kDecoderSelfAttention{
    "decoder_self_attention",          "decoder_self_attention bf16",
    "decoder_self_attention_backward", {kDecoderSelf, AttentionType{3, "none"}},
    DropoutSite::long_attention,       Partition::queries,
};

}  // namespace etc::sparse
