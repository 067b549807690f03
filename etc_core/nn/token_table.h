// Finds an encoder's token table among its parameters, for a head whose output layer is tied to it.
#pragma once

#include "etc_core/nn/parameters.h"

namespace etc {

// The table [V, E_w] of an encoder of any kind, by its name in etc-core 12. Throws Error if the set has none; add the
// encoder's parameters first.
Parameter& token_table(ParameterSet& parameters);

}  // namespace etc
