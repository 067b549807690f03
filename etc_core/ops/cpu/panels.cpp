#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/panels.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cstring>

#include "etc_core/base/integers.h"
#include "etc_core/base/transpose-inl.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/panels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {

// panel [k, cols] of W stored as [n, k]: sixteen of its rows at a time are read sequentially, which the hardware
// prefetcher follows, and written as whole cache lines. The copy is bound by memory, and vectors of more than four
// numbers gain nothing. 2 to 6 times as fast as transposing in squares of 16 x 16.
void transpose_panel(const PanelBlock& b, float* panel) {
  constexpr std::int64_t kLine = 16, kSquare = 4;
  const float* from = b.weight + b.first_col * b.stride;  // [cols, k]
  const std::int64_t whole_rows = b.k / kSquare * kSquare, whole_cols = b.cols / kSquare * kSquare;
  const auto copy_rest = [&](std::int64_t i_begin, std::int64_t j_begin, std::int64_t j_end) {
    for (std::int64_t j = j_begin; j < j_end; ++j) {
      for (std::int64_t i = i_begin; i < b.k; ++i) panel[i * b.cols + j] = from[j * b.stride + i];
    }
  };
  for (std::int64_t line = 0; line < whole_cols; line += kLine) {
    const std::int64_t end = std::min(whole_cols, line + kLine);
    for (std::int64_t i = 0; i < whole_rows; i += kSquare) {
      for (std::int64_t j = line; j < end; j += kSquare) {
        etc::HWY_NAMESPACE::transpose_square(from + j * b.stride + i, b.stride, panel + i * b.cols + j, b.cols);
      }
    }
    copy_rest(whole_rows, line, end);
  }
  copy_rest(0, whole_cols, b.cols);
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

std::int64_t panel_width(std::int64_t n, std::int64_t panel) {
  return std::min(kPanelCols, n - panel * kPanelCols);
}

// At least one panel for any k; at most all of them.
std::int64_t panel_group(std::int64_t k, std::int64_t n, std::int64_t bytes) {
  return std::clamp<std::int64_t>(kPackedBytes / (bytes * k * kPanelCols), 1, ceil_div(n, kPanelCols));
}

std::int64_t step_depth(std::int64_t k) {
  constexpr std::int64_t kDepthUnit = 64;
  return round_up(ceil_div(k, ceil_div(k, kMostDepth)), kDepthUnit);
}

PanelBlock rows_of(const PanelBlock& block, std::int64_t first_row, std::int64_t rows) {
  PanelBlock part = block;
  part.weight += block.layout == WeightLayout::in_out ? first_row * block.stride : first_row;
  part.k = rows;
  return part;
}

void copy_panel(const PanelBlock& b, float* panel) {
  if (b.layout == WeightLayout::out_in) return ETC_DISPATCH(transpose_panel)(b, panel);
  const float* from = b.weight + b.first_col;  // [k, cols], rows b.stride apart
  for (std::int64_t i = 0; i < b.k; ++i) {
    std::memcpy(panel + i * b.cols, from + i * b.stride, static_cast<std::size_t>(b.cols) * sizeof(float));
  }
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
