// Libraries whose version decides about the bits of results.
#pragma once

#include <cstdint>
#include <string>

namespace etc::ops {

// The implementation of fp32 matrix products on the CPU: "oneDNN 3.1.1 AVX-512" (the library as loaded at run time, the
// instruction set it uses, and any environment variables that switch it to other number types), or "own products"
// (ops/cpu/strip_panels.cpp), or with AMX "own products of bf16 parts (AMX), sums over all tokens"
// (ops/cpu/reduced_product.h).
std::string product_library();

// Resident bytes of that library once it has multiplied: pages of its code and the kernels it generates. 0 for our own.
std::int64_t product_library_bytes();

// The library of the vector kernels, as compiled in, such as "Highway 1.0.7".
std::string vector_library();

}  // namespace etc::ops
