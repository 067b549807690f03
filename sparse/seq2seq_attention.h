// The attention types and operators of an encoder-decoder: its encoder's tokens over themselves, its decoder's over
// themselves and what is before them, and over the encoder's states. Cross attention is that of patterns/cross.h.
//
// The three types carry scores of their own (translation 2). Encoder and decoder have running scores of their own, too:
// their layers are counted apart, so indices need only differ within each.
#pragma once

#include "sparse/patterns/cross.h"

namespace etc::sparse {

inline constexpr AttentionType kEncoderSelf{0, "encoder_self"};
inline constexpr AttentionType kDecoderSelf{2, "decoder_self"};  // beside both types of kCrossAttention

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
