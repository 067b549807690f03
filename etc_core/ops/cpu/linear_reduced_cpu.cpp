// Dense layers in bf16 or int8: rows of x are rounded in every call (bf16 rows are copied), weights when they are
// packed.
//
// Tiles of 64 rows (fewer at the end) by panels of 192 columns, as in fp32. A task takes a block of rows, rounds them
// once, and iterates over the panels: a panel of weights stays in the second-level cache while the tiles of the block
// use it.
#include "etc_core/ops/cpu/linear_reduced.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/panels.h"
#include "etc_core/ops/cpu/quantize.h"
#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/cpu/tile_shape.h"  // kTileRows

namespace etc::ops::cpu {

namespace {

// Size of one block of rounded rows; with a panel of weights it fits a second-level cache of 2 MiB.
constexpr std::int64_t kBlockBytes = 1 << 20;
// The rows of a product are a multiple of this (reduced_product.h).
constexpr std::int64_t kRowStep = 16;

// Rounds up to whole cache lines: panels, scales and sums each begin at one.
std::int64_t aligned(std::int64_t bytes) {
  return round_up(bytes, 64);
}

std::int64_t operand_bytes(ComputeType compute) {
  return compute == ComputeType::int8 ? 1 : 2;
}

// Layout of packed W [in, out]: all panels, then for int8 the scale and the sum of every column.
struct Layout {
  std::int64_t in, out, panels;
  ComputeType compute;
  bool int8;
  ReducedProduct whole, last;  // of a panel of kPanelCols columns; of the last one, which may be narrower

  Layout(ComputeType type, std::int64_t k, std::int64_t n)
      : in(k),
        out(n),
        panels(ceil_div(n, kPanelCols)),
        compute(type),
        int8(type == ComputeType::int8),
        whole(type, std::min(kPanelCols, n), k),
        last(type, n - (panels - 1) * kPanelCols, k) {}

  const ReducedProduct& product(std::int64_t panel) const { return panel + 1 < panels ? whole : last; }
  std::int64_t width(std::int64_t panel) const { return panel_width(out, panel); }
  std::int64_t panel_at(std::int64_t panel) const { return panel * aligned(whole.packed_bytes()); }
  std::int64_t scales_at() const { return panel_at(panels - 1) + aligned(last.packed_bytes()); }
  std::int64_t sums_at() const { return scales_at() + aligned(out * 4); }
  std::int64_t bytes() const { return int8 ? sums_at() + aligned(out * 4) : scales_at(); }
  std::int64_t scratch_bytes() const { return std::max(whole.scratch_bytes(kTileRows), last.scratch_bytes(kTileRows)); }
};

// Columns of a panel as signed bytes, with their scales and sums.   w [in, width] -> bytes [in, width], scales [width],
// sums [width]. One scale per column, because with a single scale columns of small weights would use few of the 7 bits.
// The sums undo the shift of x by 128: sum (x+128)·w = sum x·w + 128·sum w.
void quantize_columns(const float* w, std::int64_t in, std::int64_t width, std::int8_t* bytes, float* scales,
                      std::int32_t* sums) {
  std::fill_n(scales, width, 0.0f);
  for (std::int64_t i = 0; i < in; ++i) {
    for (std::int64_t j = 0; j < width; ++j) scales[j] = std::max(scales[j], std::abs(w[i * width + j]));
  }
  for (std::int64_t j = 0; j < width; ++j) scales[j] = scales[j] > 0 ? scales[j] / 127.0f : 1.0f;
  std::fill_n(sums, width, 0);
  for (std::int64_t i = 0; i < in; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const float q = std::nearbyint(w[i * width + j] / scales[j]);
      bytes[i * width + j] = static_cast<std::int8_t>(std::clamp(q, -127.0f, 127.0f));
      sums[j] += bytes[i * width + j];
    }
  }
}

// One block of rows, rounded.
struct RoundedRows {
  std::int64_t row_bytes;
  std::byte* operands;  // [rows rounded up to whole tiles, in]
  float* scales;        // [rows], int8 only

  RoundedRows(const DenseProduct& p, const Layout& layout, std::int64_t first, std::int64_t rows, Scratch& scratch)
      : row_bytes(layout.whole.row_bytes()) {
    const std::int64_t padded = round_up(rows, kTileRows);
    operands = scratch.take<std::byte>(padded * row_bytes);
    scales = scratch.take<float>(padded);
    const std::int64_t numbers = p.k * operand_bytes(layout.compute);
    for (std::int64_t i = 0; i < rows; ++i) {
      const Numbers x = p.x + (first + i) * p.x_stride;
      std::byte* to = operands + i * row_bytes;
      std::memset(to + numbers, 0, static_cast<std::size_t>(row_bytes - numbers));
      if (layout.int8) {
        scales[i] = quantize_row(x, p.k, reinterpret_cast<std::uint8_t*>(to));
      } else {
        round_to_bf16(x, p.k, reinterpret_cast<Bf16*>(to));
      }
    }
    // Padding rows: any values would do, but the old content of the scratch may contain NaN, which costs time.
    std::memset(operands + rows * row_bytes, 0, static_cast<std::size_t>((padded - rows) * row_bytes));
  }
};

// Data shared by the tiles of a block of rows. packed: W in its Layout; scratch: for a product's run.
struct TileContext {
  const DenseProduct& p;
  const Layout& layout;
  const std::byte* packed;
  const RoundedRows& x;
  std::int64_t first_row;  // of the block
  float* sums;             // [64, group_cols] of a tile; int32 for int8
  std::byte* scratch;
};

// The scales of rows from `row` of the block on and of columns from `column` on.
ByteScales scales_of(const TileContext& c, std::int64_t row, std::int64_t column) {
  if (!c.layout.int8) return {};
  const auto* columns = reinterpret_cast<const float*>(c.packed + c.layout.scales_at());
  const auto* sums = reinterpret_cast<const std::int32_t*>(c.packed + c.layout.sums_at());
  return {c.x.scales + row, columns + column, sums + column};
}

// Rows [row, row + rows) of the block by one panel, a group of columns at a time: the sums of a group are still in the
// first-level cache when they are finished, and its stores drain while the next group is summed.
void multiply_tile(const TileContext& c, std::int64_t panel, std::int64_t row, std::int64_t rows) {
  const ReducedProduct& product = c.layout.product(panel);
  const std::int64_t width = c.layout.width(panel), height = round_up(rows, kRowStep);
  const std::byte* weights = c.packed + c.layout.panel_at(panel);  // packed [k, width]
  const DenseProduct& p = c.p;
  for (std::int64_t col = 0; col < width; col += product.group_cols()) {
    const std::int64_t cols = std::min(product.group_cols(), width - col), column = panel * kPanelCols + col;
    const std::int64_t y_row = c.first_row + row;
    const MutableNumbers y = p.y + (y_row * p.y_stride + column);
    // Rows beyond the last are only prefetched.
    const NextRows next{y.address(), p.y_stride * y.number_bytes(), y.number_bytes()};
    product.run({height, c.x.operands + row * c.x.row_bytes, weights, col, c.scratch, c.sums, next});
    TileEpilogue end;
    end.rows = rows;
    end.cols = cols;
    end.product = c.sums;
    end.product_stride = cols;
    end.bytes = scales_of(c, row, column);
    end.add = p.add;
    end.bias = p.bias == nullptr ? nullptr : p.bias + column;
    end.activation = p.activation;
    end.z = p.z + (y_row * p.z_stride + column);
    end.z_stride = p.z_stride;
    end.y = y;
    end.y_stride = p.y_stride;
    finish_tile(end);
  }
}

// One task: rows [first, first + rows) of x by all of W. x is rounded once for all panels, and each panel stays in
// cache for all tiles of the block.
void block_of_rows(const DenseProduct& p, const Layout& layout, const std::byte* packed, std::int64_t first,
                   std::int64_t rows) {
  Scratch scratch;
  const RoundedRows x(p, layout, first, rows, scratch);
  const TileContext context{p,
                            layout,
                            packed,
                            x,
                            first,
                            scratch.take<float>(kTileRows * kPanelCols),
                            scratch.take<std::byte>(layout.scratch_bytes())};
  const ReducedUse use(layout.whole);
  for (std::int64_t panel = 0; panel < layout.panels; ++panel) {
    for (std::int64_t row = 0; row < rows; row += kTileRows) {
      multiply_tile(context, panel, row, std::min(kTileRows, rows - row));
    }
  }
}

// Columns of unpacked W [k, n] that are packed at a time.
std::int64_t grouped_columns(ComputeType compute, std::int64_t k, std::int64_t n) {
  return std::min(n, panel_group(k, n, operand_bytes(compute)) * kPanelCols);
}

// The number of rows per task affects only the time, not the bits. Every task reads all of W, so tasks are as long as the
// cache allows; but the thread with the most tiles shall have few more than the others.
std::int64_t rows_of_task(std::int64_t rows, const Layout& layout) {
  const std::int64_t fitting = std::max<std::int64_t>(1, kBlockBytes / (kTileRows * layout.whole.row_bytes()));
  const std::int64_t tiles = ceil_div(rows, kTileRows), threads = thread_count();
  const auto longest = [&](std::int64_t of_task) { return ceil_div(ceil_div(tiles, of_task), threads) * of_task; };
  std::int64_t best = std::min(fitting, tiles);
  while (threads > 1 && best > 1 && longest(best) > longest(1) * 17 / 16) --best;
  return best * kTileRows;
}

}  // namespace

std::int64_t reduced_bytes(ComputeType compute, std::int64_t k, std::int64_t n) {
  return Layout(compute, k, n).bytes();
}

void pack_reduced(ComputeType compute, const WeightColumns& from, std::byte* packed) {
  const std::int64_t k = from.k;
  const Layout to(compute, k, from.count);
  parallel_for(to.panels, [&](std::int64_t panel) {
    const std::int64_t column = panel * kPanelCols, width = to.width(panel);
    const PanelBlock block{from.weight, from.layout, k, from.n, from.first + column, width};
    if (!to.int8) return to.product(panel).round_and_pack(block, packed + to.panel_at(panel));
    Scratch scratch;
    auto* operands = scratch.take<std::int8_t>(k * width);  // [k, width]
    // All of k at once, because a column's scale is known only after its last number.
    auto* columns = scratch.take<float>(k * width);  // [k, width]
    copy_panel(block, columns);
    quantize_columns(columns, k, width, operands, reinterpret_cast<float*>(packed + to.scales_at()) + column,
                     reinterpret_cast<std::int32_t*>(packed + to.sums_at()) + column);
    to.product(panel).pack(operands, packed + to.panel_at(panel));
  });
}

void multiply_reduced(const DenseProduct& p, ComputeType compute, const std::byte* packed) {
  const Layout layout(compute, p.k, p.n);
  const std::int64_t block = rows_of_task(p.rows, layout);
  parallel_for(ceil_div(p.rows, block), [&](std::int64_t task) {
    const std::int64_t first = task * block;
    block_of_rows(p, layout, packed, first, std::min(block, p.rows - first));
  });
}

void multiply_reduced_packing(const DenseProduct& p, ComputeType compute, const float* weight, WeightLayout layout) {
  const std::int64_t group = grouped_columns(compute, p.k, p.n);
  Scratch scratch;
  auto* packed = scratch.take<std::byte>(reduced_bytes(compute, p.k, group));  // of [k, group]
  for (std::int64_t first = 0; first < p.n; first += group) {
    const std::int64_t count = std::min(group, p.n - first);
    pack_reduced(compute, {.weight = weight, .layout = layout, .k = p.k, .n = p.n, .first = first, .count = count},
                 packed);
    DenseProduct columns = p;  // the same rows, columns [first, first + count) of W, bias, z and y
    columns.n = count;
    if (p.bias != nullptr) columns.bias += first;
    columns.z = p.z + first;
    columns.y = p.y + first;
    multiply_reduced(columns, compute, packed);
  }
}

std::int64_t reduced_packing_scratch(ComputeType compute, std::int64_t rows, std::int64_t k, std::int64_t n) {
  const std::int64_t group = grouped_columns(compute, k, n);
  const Layout layout(compute, k, group);
  // Columns as floats and as bytes; bf16 is rounded without a copy.
  const std::int64_t while_packing = layout.int8 ? k * std::min(group, kPanelCols) * 5 : 0;
  const std::int64_t block = std::min(rows_of_task(rows, layout), round_up(rows, kTileRows));
  return layout.bytes() + std::max(while_packing, block * layout.whole.row_bytes());
}

}  // namespace etc::ops::cpu
