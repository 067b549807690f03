// The kernels of sparse/cpu/bf16_tiles_amx.cpp with the tile registers of AMX in memory: they can be tested on any
// processor.
#pragma once

#include "sparse/cpu/bf16_tiles.h"

namespace etc::test {

// Of this thread: its tile registers are emulated. Products only; the roundings are the plain ones.
const sparse::Bf16Tiles& emulated_amx_tiles();

}  // namespace etc::test
