// The k largest numbers of runs of rows, which is all that decoding needs from a window's logits.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"

namespace etc::ops {

// A number and its row, counted from the first row of the segment.
struct Ranked {
  std::int32_t row = -1;  // -1: the segment has fewer than k rows
  float value = 0;
};

// Segment s owns rows offsets[s] … offsets[s+1]-1 of z. The result holds the k largest numbers of each of its columns,
// largest first; among equal numbers (0 and -0 are equal) the lower row comes first. Non-finite numbers come before all
// others, in the order of their rows, so the result shows whether there are any.
//   offsets   [S+1]  on the host; offsets[0] = 0, never decreasing
//   z         [offsets[S], n] without gaps, on the device
//   top       [S, n, k] on the host; segments with fewer than k rows are padded with Ranked{}
// Rules: the result is the same on every device, for any thread count and any neighbours. Cost on the host: one pass
// over z, and O(log k) for each number that is among the k largest so far; on a device one sort of T·n numbers and a
// copy of S·n·k entries. Throws Error on S < 0, n < 1, k < 1, offsets that violate the rules above, missing arrays, and
// T·n or S·n above 2^31 - 1.
struct TopK {
  std::int64_t segments = 0, cols = 0, k = 0;  // S, n, k
  const std::int64_t* offsets = nullptr;
  const float* z = nullptr;
  Ranked* top = nullptr;
};
void top_k(Device device, const TopK& args);

extern KernelSlot<void(const TopK&)> top_k_kernel;

}  // namespace etc::ops
