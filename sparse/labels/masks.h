// Masks: which pairs of one sequence see each other, 1 = yes (etc-core 4.4).
//
// Every mask compares segment ids for equality. Padding sees padding, so no row is ever all zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etc::sparse {

// A breakpoint is a 1 at the last (ending) or first (starting) token of each segment.
enum class Breakpoints { ending, starting };

// out[i] = 1 where values[i] == value, else 0: the basic operation of every mask. `out` must not overlap `values`:
// bytes may alias anything, and the compiler vectorises the loop only with __restrict.
template <typename Mask>
void write_equal(const std::int32_t* __restrict values, std::int64_t count, std::int32_t value, Mask* __restrict out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Mask>(values[i] == value);
}

// Segment numbers 0, 1, … of a sequence. Ending breakpoints 0 1 0 1 0 0 and starting ones 0 0 1 0 1 0 both give
// 0 0 1 1 2 2.
std::vector<std::int32_t> segments_from_breakpoints(std::span<const std::int32_t> breakpoints,
                                                    Breakpoints kind = Breakpoints::ending);

// Example ids counted from the end, as the input builders do (etc-core 8.1): ending breakpoints 0 1 0 0 1 0 give
// 2 2 1 1 1 0; what follows the last breakpoint is padding and has id 0.
std::vector<std::int32_t> example_ids_from_breakpoints(std::span<const std::int32_t> breakpoints);

// [n, n]: 1 where the segment ids are equal; segments need not be contiguous. With a 0/1 input mask instead of segment
// ids the result is the mask of a padded sequence.
std::vector<std::int32_t> segmented_mask(std::span<const std::int32_t> segment_ids);
std::vector<std::int32_t> mask_from_breakpoints(std::span<const std::int32_t> breakpoints,
                                                Breakpoints kind = Breakpoints::ending);

// [n, 2*radius+1]: column w of row i is 1 where key i + w - radius exists and has i's segment id.
// Throws Error when radius < 1 or a segment id is negative.
std::vector<std::int32_t> local_segmented_mask(std::span<const std::int32_t> segment_ids, std::int64_t radius);
std::vector<std::int32_t> local_mask_from_breakpoints(std::span<const std::int32_t> breakpoints, std::int64_t radius,
                                                      Breakpoints kind = Breakpoints::ending);

// Columns [first, last) of row `query` of a window that exist in a sequence of n tokens.
struct WindowColumns {
  std::int64_t first, last;
};
constexpr WindowColumns window_columns(std::int64_t query, std::int64_t n, std::int64_t radius) {
  const std::int64_t first = radius - query, last = radius + n - query, W = 2 * radius + 1;
  return {first > 0 ? first : 0, last < W ? last : W};
}

}  // namespace etc::sparse
