// Tiles of the forward product and of dx: their shapes and their order.
//
// Invariant: the tiles follow from the sizes alone. A tile is 64 rows by 192 columns. The last rows are padded with
// zero rows and may use a lower tile that gives the same bits (tile_shape.h). The inner dimension is summed in steps of
// equal depth, in order. Every row of every call goes through products of one of few shapes, so its bits depend neither
// on its position nor on its neighbours. Tiles of this size with whole panels in contiguous memory reach the rate of
// one large product (bench/matmul_bench.cpp).
#include "etc_core/ops/cpu/panel_product.h"

#include <algorithm>
#include <cstring>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/panels.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/cpu/tile_product.h"
#include "etc_core/ops/cpu/tile_shape.h"

namespace etc::ops::cpu {

namespace {

// Rows of W in a step: those of a panel (590 KB) and as many columns of x of a tile (197 KB) fit a second-level cache of
// 1 MiB. A panel of 3072 rows does not fit: it would be read from the third-level cache once per tile (GFLOP/s of one
// core, 3072 -> 768: 97 whole, 105 in four steps).
constexpr std::int64_t kMostDepth = 768;
constexpr std::int64_t kDepthUnit = 64;

// One step of the inner dimension.
struct Step {
  std::int64_t begin, end;
  std::int64_t depth() const { return end - begin; }
};

std::int64_t step_depth(std::int64_t k) {
  return round_up(ceil_div(k, ceil_div(k, kMostDepth)), kDepthUnit);
}

struct Panel {
  const float* rows;  // [k, width]
  std::int64_t first_col, width;
};

// The sum over the step of y [rows, width] (= or +=) act(x [rows, k]·panel [k, width] + bias) for the 64 rows (fewer at
// the end) from first_row on; y holds the sums of the steps before. A whole tile is multiplied in place. The last rows
// are copied first and padded with zero rows up to a height that gives the same bits: in place, the product would read
// and write rows beyond the matrix.
void product_tile(const DenseProduct& p, const Panel& panel, const Step& step, std::int64_t first_row) {
  const std::int64_t rows = std::min(kTileRows, p.rows - first_row), k = step.depth(), width = panel.width;
  const bool whole = rows == kTileRows, add = p.add || step.begin > 0, last = step.end == p.k;
  const std::int64_t height = tile_height(rows, width, k);
  float* y = p.y.fp32 + first_row * p.y_stride + panel.first_col;  // [rows, width], rows y_stride apart
  Scratch scratch;
  MatrixView x{p.x.fp32 + first_row * p.x_stride + step.begin, p.x_stride};  // [rows, k]
  MutableMatrixView product{y, p.y_stride};  // destination: y, or y_tile for a partial tile
  if (!whole) {
    auto* x_tile = scratch.take<float>(height * k);      // [height, k]
    auto* y_tile = scratch.take<float>(height * width);  // [height, width]
    for (std::int64_t i = 0; i < rows; ++i) {
      std::memcpy(x_tile + i * k, x.data + i * p.x_stride, static_cast<std::size_t>(k) * sizeof(float));
      // y is added inside the product here, too: adding it afterwards would round differently than in a whole tile.
      if (add) std::memcpy(y_tile + i * width, y + i * p.y_stride, static_cast<std::size_t>(width) * sizeof(float));
    }
    std::fill(x_tile + rows * k, x_tile + height * k, 0.0f);
    if (add) std::fill(y_tile + rows * width, y_tile + height * width, 0.0f);
    x = {x_tile, k};
    product = {y_tile, width};
  }
  const MatrixView w{panel.rows + step.begin * width, width};
  tile_product({.m = height, .n = width, .k = k, .a = x, .b = w, .y = product, .add = add});
  TileEpilogue end;
  if (last) {
    end.bias = p.bias == nullptr ? nullptr : p.bias + panel.first_col;
    end.activation = p.activation;
    end.z = p.z + (first_row * p.z_stride + panel.first_col);
    end.z_stride = p.z_stride;
  }
  if (whole && end.bias == nullptr && end.activation == Activation::linear) return;
  end.rows = rows;
  end.cols = width;
  end.product = product.data;
  end.product_stride = product.stride;
  end.y = y;
  end.y_stride = p.y_stride;
  finish_tile(end);
}

// Number of tiles whose x, for one step, fits a second-level cache of 2 MiB together with the panel they share.
std::int64_t tiles_of_block(std::int64_t rows, std::int64_t depth) {
  constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;
  const std::int64_t row_bytes = depth * static_cast<std::int64_t>(sizeof(float));
  if (rows * row_bytes <= kBlockBytes) return ceil_div(rows, kTileRows);
  return std::max<std::int64_t>(1, kBlockBytes / (kTileRows * row_bytes));
}

// Tiles of a task. With several steps, each step uses another part of the panel for all tiles of the task; if there are
// few tiles, every thread must still get some. The bits are the same for any number.
std::int64_t tiles_of_task(std::int64_t steps, std::int64_t tiles, std::int64_t panels) {
  constexpr std::int64_t kMost = 8, kTasksPerThread = 2;
  if (steps == 1) return 1;
  return std::clamp<std::int64_t>(tiles * panels / (kTasksPerThread * thread_count()), 1, kMost);
}

}  // namespace

void multiply_panels(const DenseProduct& p, std::int64_t first_panel, std::int64_t panels, const float* packed) {
  const std::int64_t depth = step_depth(p.k), tiles = ceil_div(p.rows, kTileRows);
  const std::int64_t most = tiles_of_task(ceil_div(p.k, depth), tiles, panels);
  // The tasks are ordered by block of rows, then by panel, then by rows within the block.
  const std::int64_t parts = ceil_div(tiles, most);  // of all rows
  const std::int64_t most_parts = std::max<std::int64_t>(1, tiles_of_block(p.rows, depth) / most);
  parallel_for(parts * panels, [&](std::int64_t task) {
    const std::int64_t first_part = task / (most_parts * panels) * most_parts, within = task - first_part * panels;
    const std::int64_t height = std::min(most_parts, parts - first_part);  // of this block, in parts
    const std::int64_t number = within / height, part = first_part + within % height;
    const Panel panel{packed + number * kPanelCols * p.k, (first_panel + number) * kPanelCols,
                      panel_width(p.n, first_panel + number)};
    const std::int64_t first_row = part * most * kTileRows, end_row = std::min(p.rows, (part + 1) * most * kTileRows);
    for (std::int64_t k = 0; k < p.k; k += depth) {
      const Step step{k, std::min(p.k, k + depth)};
      for (std::int64_t row = first_row; row < end_row; row += kTileRows) product_tile(p, panel, step, row);
    }
  });
}

}  // namespace etc::ops::cpu
