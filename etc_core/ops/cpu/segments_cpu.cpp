// Sums and copies of runs of rows. Plain loops, since they are bound by memory.
#include <algorithm>
#include <cstring>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/segments.h"

namespace etc::ops::cpu {

namespace {

constexpr std::int64_t kTaskSegments = 32;

// Calls body(segment) for all segments, in tasks of kTaskSegments. Runs have few rows each (the tokens of a word), so
// tasks with equally many segments are balanced well enough.
template <typename Body>
void for_segments(std::int64_t count, Body body) {
  parallel_for(ceil_div(count, kTaskSegments), [&](std::int64_t task) {
    const std::int64_t end = std::min(count, (task + 1) * kTaskSegments);
    for (std::int64_t s = task * kTaskSegments; s < end; ++s) body(s);
  });
}

void add_row(const float* from, float* to, std::int64_t cols) {
  for (std::int64_t c = 0; c < cols; ++c) to[c] += from[c];
}

void sum_segments(const Segments& args) {
  for_segments(args.segments, [&](std::int64_t s) {
    float* sum = args.of_segments + s * args.cols;  // [H]
    if (!args.add) std::fill(sum, sum + args.cols, 0.0f);
    for (std::int64_t i = args.offsets[s]; i < args.offsets[s + 1]; ++i) {
      add_row(args.rows + i * args.cols, sum, args.cols);
    }
  });
}

void spread_segments(const Segments& args) {
  for_segments(args.segments, [&](std::int64_t s) {
    const float* value = args.of_segments + s * args.cols;  // [H]
    for (std::int64_t i = args.offsets[s]; i < args.offsets[s + 1]; ++i) {
      float* row = args.rows + i * args.cols;  // [H], belongs to one segment only, so no two tasks write it
      if (args.add) {
        add_row(value, row, args.cols);
      } else {
        std::memcpy(row, value, static_cast<std::size_t>(args.cols) * sizeof(float));
      }
    }
  });
}

}  // namespace

void register_segments() {
  fill_slot(sum_segments_kernel, sum_segments);
  fill_slot(spread_segments_kernel, spread_segments);
}

}  // namespace etc::ops::cpu
