// Numbers of runs of rows put in order, on the device, with Thrust.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/span.h"
#include "etc_core/ops/top_k.h"

namespace etc::ops::cuda {

// As TopK says (ops/top_k.h), everything on the device. A list is a column of a segment; their numbers, list by list,
// are the elements that are sorted.
struct TopKSort {
  std::int64_t segments = 0, cols = 0, k = 0;
  simt::Span<const std::int64_t> offsets;  // [S+1]
  simt::Span<const float> z;               // [T, n]
  simt::Span<std::uint64_t> keys;          // [T·n] working memory
  simt::Span<std::int32_t> rows;           // [T·n] likewise
  simt::Span<Ranked> top;                  // [S, n, k]
};
void sort_top_k(const TopKSort& args, void* stream);

}  // namespace etc::ops::cuda
