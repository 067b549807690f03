// Features of the processor, detected at run time, within the limit of cpu_limit.h.
#pragma once

#include <string>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/cpu_limit.h"

namespace etc {

// Throws Error when the processor lacks what every CPU kernel needs (x86-64: AVX2 and FMA).
void require_supported_cpu();
// The same check for a processor with the given features.
void require_instructions(bool avx2, bool fma);

// For run records: "x86-64 avx2 avx512f avx512bw …", or "aarch64". Resume compares it: bits differ between instruction
// sets.
std::string instruction_set();

// Whether the processor multiplies matrices of this type: int8 always, bf16 with AMX or the BF16 part of AVX-512.
bool cpu_offers(ComputeType type);

// Whether kernels are run in their version for AVX-512: the processor has the parts F, BW, DQ and VL, and the limit allows
// them. Decided by the first call, for the whole process.
bool cpu_has_avx512_vectors();

// Whether the processor has the AVX-512 extension that multiplies bf16 (BF16) or bytes (VNNI).
bool cpu_has_avx512(ComputeType type);

// Whether the matrix tiles of AMX can be used for bf16 or int8. The first call asks the operating system for their
// registers.
bool cpu_has_amx(ComputeType type);

}  // namespace etc
