// What the processor can do, asked at run time.
#pragma once

#include <string>

namespace etc {

// Throws Error when the processor lacks what every CPU kernel needs (x86-64: AVX2 and FMA).
void require_supported_cpu();

// For run records: "AVX-512 (avx512f avx512bw …)" or the like. Resume compares it: bits differ between instruction
// sets.
std::string instruction_set();

}  // namespace etc
