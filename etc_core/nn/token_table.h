// Where an encoder's token table is among its parameters: for a head whose output layer is that table.
#pragma once

#include "etc_core/nn/parameters.h"

namespace etc {

// The table [V, E_w] of an encoder of any kind, by its name of etc-core 12. Throws Error when the set has none: add the
// encoder's parameters first.
Parameter& token_table(ParameterSet& parameters);

}  // namespace etc
