// From tokens to words to phrases: runs of rows, and convolutions over rows that stay within their example.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/autograd/functions.h"

namespace etc {

// Runs of rows: segment s has rows offsets[s] … offsets[s+1]-1; it may be empty.
using SegmentOffsets = std::shared_ptr<const std::vector<std::int64_t>>;  // [S+1]

// y_s = sum of the rows of segment s, 0 for none.   x [M, H] → y [S, H], M = offsets[S].   Saves nothing.
Var sum_segments(Tape& tape, const Var& x, const SegmentOffsets& offsets);

// y_i = x_s for every row i of segment s.   x [S, H] → y [M, H].   Saves nothing.
Var spread_segments(Tape& tape, const Var& x, const SegmentOffsets& offsets);

// Convolution over the rows of each example, the kernel not flipped, without padding (task-openkp 4.2).
//   y_j = bias + Σ_{t<k} x_{j+t}·kernel[t]      where rows j … j+k−1 belong to one example; 0 elsewhere
//   x [M, H] → y [M, out];   kernel [k, H, out],  bias [out]
// Saves x. Cost: k products [M, H]·[H, out].
// Rules: the bits of y_j depend on rows j … j+k−1 alone.
Var ngram_convolution(Tape& tape, const Var& x, const std::shared_ptr<const RaggedRows>& rows, Parameter& kernel,
                      Parameter& bias);

}  // namespace etc
