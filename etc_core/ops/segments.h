// Runs of rows that belong together, such as the tokens of a word or of a page element.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// Segment s owns rows offsets[s] … offsets[s+1]-1 of the longer matrix; it may own none. Each of the two operators is
// the gradient of the other.
//   sum_segments      of_segments_s (= or +=) sum of rows_i over the rows i of s, in order; 0 if s has none
//   spread_segments   rows_i (= or +=) of_segments_s for every row i of s
//   offsets       [S+1]  on the host; offsets[0] = 0, never decreasing
//   rows          [offsets[S], H] without gaps, on the device: read by sum_segments, written by spread_segments
//   of_segments   [S, H] without gaps, on the device: written by sum_segments, read by spread_segments
// Rules: the bits of a segment depend on its rows alone; same bits for any thread count. Cost: O((S + offsets[S])·H).
// Throws Error on S < 0, H < 1, offsets that do not begin at 0 or decrease, and missing arrays.
struct Segments {
  std::int64_t segments = 0, cols = 0;  // S, H
  const std::int64_t* offsets = nullptr;
  float* rows = nullptr;
  float* of_segments = nullptr;
  bool add = false;  // add to the output instead of overwriting it
};
void sum_segments(Device device, const Segments& args);
void spread_segments(Device device, const Segments& args);

extern KernelSlot<void(const Segments&)> sum_segments_kernel;
extern KernelSlot<void(const Segments&)> spread_segments_kernel;

}  // namespace etc::ops
