// Weight matrices cut into panels of columns, the right-hand operands of the tiles of dense layers.
#pragma once

#include <cstdint>

#include "etc_core/ops/linear.h"

namespace etc::ops::cpu {

inline constexpr std::int64_t kPanelCols = 192;
// Unpacked weights are packed a group of panels at a time, at most this many bytes. That is enough for any whole layer
// of the published models, and bounds the memory for an embedding table used as output layer.
inline constexpr std::int64_t kPackedBytes = 16 << 20;

// For W [k, n]: the columns of panel number `panel`; how many panels are packed at a time if a number takes `bytes`
// bytes.
std::int64_t panel_width(std::int64_t n, std::int64_t panel);
std::int64_t panel_group(std::int64_t k, std::int64_t n, std::int64_t bytes);

// Columns [first_col, first_col + cols) of W [k, n], which may be stored as [n, k].
struct PanelBlock {
  const float* weight;
  WeightLayout layout;
  std::int64_t k, n;
  std::int64_t first_col, cols;
};

// Copies the block to a contiguous [k, cols].
void copy_panel(const PanelBlock& block, float* panel);

}  // namespace etc::ops::cpu
