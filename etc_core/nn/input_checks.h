// Rejects an invalid encoder input before anything is computed from it.
#pragma once

#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"

namespace etc {

// The origin named in messages about an encoder's input.
constexpr const char* kEncoderInput = "encoder";

// Throws Error naming tensor, shape or example, and limit: offsets that do not begin at 0 or are not monotone, lists
// whose lengths disagree with them, adders and labels of another size, labels that ask for relative tables the model
// does not have, examples longer than the position tables, position ids without or beyond them (etc-core 2.2, rules
// 7-10). Other ids outside their tables and labels >= R are detected where they are used: by the embedding operator and
// by the tiles.
void check_input(const EncoderInput& input, const EtcConfig& config);

// The same for an encoder of one sequence, with long tokens only. Also throws Error on global tokens. The encoder
// itself checks labels.
void check_sequence(const EncoderInput& input, const EncoderConfig& config);

}  // namespace etc
