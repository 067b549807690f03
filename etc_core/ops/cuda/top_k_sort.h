// Sorts the numbers of runs of rows on the device, with Thrust.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/span.h"
#include "etc_core/ops/top_k.h"

namespace etc::ops::cuda {

// The arguments of TopK (ops/top_k.h), all on the device. A list is a column of a segment; the numbers of all lists,
// list by list, are sorted.
struct TopKSort {
  std::int64_t segments = 0, cols = 0, k = 0;
  simt::Span<const std::int64_t> offsets;  // [S+1]
  simt::Span<const float> z;               // [T, n]
  simt::Span<std::uint64_t> keys;          // [T·n] working memory
  simt::Span<std::int32_t> rows;           // [T·n] working memory
  simt::Span<Ranked> top;                  // [S, n, k]
};
void sort_top_k(const TopKSort& args, void* stream);

}  // namespace etc::ops::cuda
