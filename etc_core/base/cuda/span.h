// A range of device memory as passed to kernels: pointer and length. Host code that only passes memory on needs just
// this header; functions for reading and writing are in simt.h.
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>

namespace etc::simt {

template <typename T>
struct Span {
  T* data = nullptr;
  std::int64_t size = 0;  // elements; the emulator checks every access against it
};

// Blocks of a launch, and the dynamic shared memory each of them has.
struct Grid {
  std::int64_t x = 1, y = 1, z = 1;  // x up to 2^31-1, y and z up to 65,535; a 0 launches nothing
  std::int64_t shared_bytes = 0;
};

}  // namespace etc::simt
