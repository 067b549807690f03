#include "etc_core/ops/cpu/panels.h"

#include <algorithm>
#include <cstring>

#include "etc_core/base/integers.h"

namespace etc::ops::cpu {

std::int64_t panel_width(std::int64_t n, std::int64_t panel) {
  return std::min(kPanelCols, n - panel * kPanelCols);
}

// At least one panel, however large k is; at most all of them.
std::int64_t panel_group(std::int64_t k, std::int64_t n, std::int64_t bytes) {
  return std::clamp<std::int64_t>(kPackedBytes / (bytes * k * kPanelCols), 1, ceil_div(n, kPanelCols));
}

void copy_panel(const PanelBlock& b, float* panel) {
  if (b.layout == WeightLayout::in_out) {
    const float* from = b.weight + b.first_row * b.n + b.first_col;  // [rows, cols], rows n apart
    for (std::int64_t i = 0; i < b.rows; ++i) {
      std::memcpy(panel + i * b.cols, from + i * b.n, static_cast<std::size_t>(b.cols) * sizeof(float));
    }
    return;
  }
  // Transposition by squares that stay in the first-level cache: reads and writes are whole cache lines either way.
  constexpr std::int64_t kSquare = 16;
  const float* from = b.weight + b.first_col * b.k + b.first_row;  // [cols, rows], rows k apart
  for (std::int64_t i = 0; i < b.rows; i += kSquare) {
    const std::int64_t i_end = std::min(b.rows, i + kSquare);
    for (std::int64_t j = 0; j < b.cols; j += kSquare) {
      const std::int64_t j_end = std::min(b.cols, j + kSquare);
      for (std::int64_t jj = j; jj < j_end; ++jj) {
        for (std::int64_t ii = i; ii < i_end; ++ii) panel[ii * b.cols + jj] = from[jj * b.k + ii];
      }
    }
  }
}

}  // namespace etc::ops::cpu
