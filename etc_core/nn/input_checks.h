// Refuses an encoder input that cannot be meant, before anything is computed from it.
#pragma once

#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"

namespace etc {

// Where messages about an encoder's input say they come from.
constexpr const char* kEncoderInput = "encoder";

// Throws Error naming tensor, shape or example, and limit: offsets that do not begin at 0 or are not monotone, lists
// whose lengths disagree with them, adders and labels of another size, labels that ask for relative tables the model
// does not have, examples longer than the position tables, position ids without or beyond them (etc-core 2.2, rules
// 7-10). Other ids outside their tables and labels >= R are found where they are used: by the embedding operator and by
// the tiles.
void check_input(const EncoderInput& input, const EtcConfig& config);

// The same of an encoder of one sequence: long tokens alone. Throws Error on global tokens, too. Labels are the
// encoder's matter.
void check_sequence(const EncoderInput& input, const EncoderConfig& config);

}  // namespace etc
