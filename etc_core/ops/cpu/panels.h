// Weight matrices cut into panels of columns: the right-hand sides of the tiles of dense layers.
#pragma once

#include <cstdint>

#include "etc_core/ops/linear.h"

namespace etc::ops::cpu {

inline constexpr std::int64_t kPanelCols = 192;
// Unpacked weights are packed a group of panels at a time, at most this many bytes: enough for any layer of the
// published models at once, and a bound for an embedding table used as output layer.
inline constexpr std::int64_t kPackedBytes = 16 << 20;

// Of W [k, n]: the columns of a panel, and how many panels of numbers of `bytes` bytes are packed at a time.
std::int64_t panel_width(std::int64_t n, std::int64_t panel);
std::int64_t panel_group(std::int64_t k, std::int64_t n, std::int64_t bytes);

// A block of W [k, n], which may be stored as [n, k].
struct PanelBlock {
  const float* weight;
  WeightLayout layout;
  std::int64_t k, n;
  std::int64_t first_row, rows, first_col, cols;
};

// The block as a contiguous [rows, cols].
void copy_panel(const PanelBlock& block, float* panel);

}  // namespace etc::ops::cpu
