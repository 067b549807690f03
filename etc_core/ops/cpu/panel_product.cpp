// Tiles of the forward product and of dx: their shapes and their order.
//
// A tile is a number of rows by a panel of 192 columns. Its inner dimension is summed in steps of equal depth (the last
// one may be shorter), in order; the depth depends on the size of W only. The bits of a row depend neither on its
// position nor on its neighbours (panel_kernel.h).
#include "etc_core/ops/cpu/panel_product.h"

#include <algorithm>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/panel_kernel.h"
#include "etc_core/ops/cpu/panels.h"

namespace etc::ops::cpu {

namespace {

// One step of the inner dimension.
struct Step {
  std::int64_t begin, end;
  std::int64_t depth() const { return end - begin; }
};

struct Panel {
  const float* rows;  // [k, width], packed
  std::int64_t first_col, width;
};

// The sum over the step of y [rows, width] (= or +=) act(x [rows, k]·panel [k, width] + bias) for `rows` rows from
// first_row on; y holds the sums of the steps before.
void product_tile(const DenseProduct& p, const Panel& panel, const Step& step, std::int64_t first_row,
                  std::int64_t rows) {
  float* const y = p.y.fp32 + first_row * p.y_stride + panel.first_col;  // [rows, width], rows y_stride apart
  panel_kernel().multiply({.rows = rows,
                           .width = panel.width,
                           .depth = step.depth(),
                           .x = p.x.fp32 + first_row * p.x_stride + step.begin,
                           .x_stride = p.x_stride,
                           .panel = panel.rows,
                           .k = p.k,
                           .begin = step.begin,
                           .y = y,
                           .y_stride = p.y_stride,
                           .add = p.add || step.begin > 0});
  if (step.end < p.k || (p.bias == nullptr && p.activation == Activation::linear)) return;
  TileEpilogue end;
  end.rows = rows;
  end.cols = panel.width;
  end.bias = p.bias == nullptr ? nullptr : p.bias + panel.first_col;
  end.activation = p.activation;
  end.z = p.z + (first_row * p.z_stride + panel.first_col);
  end.z_stride = p.z_stride;
  end.product = y;
  end.product_stride = p.y_stride;
  end.y = y;
  end.y_stride = p.y_stride;
  finish_tile(end);
}

// Rows of a tile: fewer if there were less than two tiles per thread otherwise.
std::int64_t rows_of_tile(std::int64_t rows, std::int64_t panels) {
  const PanelKernel& kernel = panel_kernel();
  const bool enough = ceil_div(rows, kernel.tile_rows) * panels >= 2 * thread_count();
  return thread_count() == 1 || enough ? kernel.tile_rows : kernel.fewer_rows;
}

// Number of tiles whose x, for one step, fits a second-level cache of 2 MiB together with the panel they share.
std::int64_t tiles_of_block(std::int64_t rows, std::int64_t depth, std::int64_t tile_rows) {
  constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;
  const std::int64_t row_bytes = depth * static_cast<std::int64_t>(sizeof(float));
  if (rows * row_bytes <= kBlockBytes) return ceil_div(rows, tile_rows);
  return std::max<std::int64_t>(1, kBlockBytes / (tile_rows * row_bytes));
}

// Tiles of a task. With several steps, each step uses another part of the panel for all tiles of the task; if there are
// few tiles, every thread must still get some. The bits are the same for any number.
std::int64_t tiles_of_task(std::int64_t steps, std::int64_t tiles, std::int64_t panels) {
  constexpr std::int64_t kTasksPerThread = 2;
  if (steps == 1) return 1;
  return std::clamp<std::int64_t>(tiles * panels / (kTasksPerThread * thread_count()), 1, panel_kernel().tiles_of_step);
}

}  // namespace

void multiply_panels(const DenseProduct& p, std::int64_t first_panel, std::int64_t panels, const float* packed) {
  const std::int64_t depth = step_depth(p.k), tile_rows = rows_of_tile(p.rows, panels);
  const std::int64_t tiles = ceil_div(p.rows, tile_rows);
  const std::int64_t most = tiles_of_task(ceil_div(p.k, depth), tiles, panels);
  // The tasks are ordered by block of rows, then by panel, then by rows within the block.
  const std::int64_t parts = ceil_div(tiles, most);  // of all rows
  const std::int64_t most_parts = std::max<std::int64_t>(1, tiles_of_block(p.rows, depth, tile_rows) / most);
  parallel_for(parts * panels, [&](std::int64_t task) {
    const std::int64_t first_part = task / (most_parts * panels) * most_parts, within = task - first_part * panels;
    const std::int64_t height = std::min(most_parts, parts - first_part);  // of this block, in parts
    const std::int64_t number = within / height, part = first_part + within % height;
    const Panel panel{packed + number * kPanelCols * p.k, (first_panel + number) * kPanelCols,
                      panel_width(p.n, first_panel + number)};
    const std::int64_t first_row = part * most * tile_rows, end_row = std::min(p.rows, (part + 1) * most * tile_rows);
    for (std::int64_t k = 0; k < p.k; k += depth) {
      const Step step{k, std::min(p.k, k + depth)};
      for (std::int64_t row = first_row; row < end_row; row += tile_rows) {
        product_tile(p, panel, step, row, std::min(tile_rows, end_row - row));
      }
    }
  });
}

}  // namespace etc::ops::cpu
