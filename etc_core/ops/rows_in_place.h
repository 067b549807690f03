#pragma once

#include <cstdint>

namespace etc::ops {

// On the CPU, fp32 products of up to so many rows read weights [in, out] that nobody packed where they lie; those of
// more pack them first. On one core, 768 x 3072: packing takes 1.1 ms, 512 rows 22.3 ms with packed weights and 23.1
// with weights in place. The bits are the same.
inline constexpr std::int64_t kRowsInPlace = 512;

// Layers side by side, packed together, have the bits of each alone where their columns are multiples of this: of the
// width of the tiles of such products.
inline constexpr std::int64_t kColumnsInPlace = 192;

}  // namespace etc::ops
