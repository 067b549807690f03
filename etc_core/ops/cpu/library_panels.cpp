// fp32 tiles of dense layers with oneDNN (tile_product.h): 64 rows by a panel of 192 columns reach the rate of one large
// product (bench/matmul_bench.cpp). The last rows are padded with zero rows and may use a lower tile that gives the same
// bits (tile_shape.h).
#include <algorithm>
#include <cstring>

#include "etc_core/ops/cpu/panel_kernel.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/cpu/tile_product.h"
#include "etc_core/ops/cpu/tile_shape.h"

namespace etc::ops::cpu {

namespace {

// Multiplies a padded copy: in place, the product would read and write rows beyond the matrix.
void multiply_padded(const PanelTile& t, const MatrixView& w, std::int64_t height) {
  Scratch scratch;
  auto* const x = scratch.take<float>(height * t.depth);  // [height, depth]
  auto* const y = scratch.take<float>(height * t.width);  // [height, width]
  const auto copy = [](const float* from, std::int64_t count, float* to) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  };
  for (std::int64_t i = 0; i < t.rows; ++i) {
    copy(t.x + i * t.x_stride, t.depth, x + i * t.depth);
    // y is added inside the product here, too: adding it afterwards would round differently than in a whole tile.
    if (t.add) copy(t.y + i * t.y_stride, t.width, y + i * t.width);
  }
  std::fill(x + t.rows * t.depth, x + height * t.depth, 0.0f);
  if (t.add) std::fill(y + t.rows * t.width, y + height * t.width, 0.0f);
  tile_product({.m = height, .n = t.width, .k = t.depth, .a = {x, t.depth}, .b = w, .y = {y, t.width}, .add = t.add});
  for (std::int64_t i = 0; i < t.rows; ++i) copy(y + i * t.width, t.width, t.y + i * t.y_stride);
}

void multiply_by_library(const PanelTile& t) {
  const MatrixView w{t.panel + t.begin * t.width, t.width};
  const std::int64_t height = tile_height(t.rows, t.width, t.depth);
  if (t.rows < kTileRows) return multiply_padded(t, w, height);
  tile_product(
      {.m = t.rows, .n = t.width, .k = t.depth, .a = {t.x, t.x_stride}, .b = w, .y = {t.y, t.y_stride}, .add = t.add});
}

}  // namespace

const PanelKernel kLibraryPanels{kTileRows, kTileRows, 8, copy_panel, multiply_by_library};

}  // namespace etc::ops::cpu
