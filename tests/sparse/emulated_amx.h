// The kernels of sparse/cpu/bf16_tiles_amx.cpp with AMX's tile registers emulated in memory, so that
// they can be tested on any processor.
#pragma once

#include "sparse/cpu/bf16_tiles.h"

namespace etc::sparse {
struct InterleavedOperands;
}

namespace etc::test {

// The emulated tile registers belong to the calling thread. Only the products are emulated; rounding uses the plain
// functions.
const sparse::Bf16Tiles& emulated_amx_tiles();

// The products of one step (bf16_interleave.h): `parts` parts one by one, then the rest.
void interleave_on_emulated_tiles(const sparse::InterleavedOperands& operands, int parts);

}  // namespace etc::test
