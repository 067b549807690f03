// Dense layers whose operands are bf16 or int8 (inference): the counterpart of the fp32 tiles in linear_cpu.cpp.
#pragma once

#include "etc_core/ops/linear.h"

namespace etc::ops::cpu {

// What follows: packed.compute is bf16 or int8.
std::int64_t reduced_bytes(const PackedWeights& packed);

// Allocates packed.bytes.
void pack_reduced(const float* weight, WeightLayout layout, Purpose purpose, PackedWeights& packed);

void linear_reduced(const LinearForward& args);

}  // namespace etc::ops::cpu
