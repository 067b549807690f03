// Dense layers whose operands are bf16, int8, or fp32 in bf16 parts: rows of x are rounded (split) in every call, bf16 rows
// are copied; weights when they are packed.
//
// Tiles of 64 rows (fewer at the end) by panels of 192 columns, as in fp32. A task takes a block of rows, rounds them
// once, and iterates over the panels: a panel of weights stays in the second-level cache while the tiles of the block
// use it. fp32 products are summed in the steps of panels.h, since rows of 3072 numbers in three parts fill that cache;
// the sums of a block of rows then stay in scratch until the last step.
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

// Bytes of a number as an operand: fp32 in three parts.
std::int64_t operand_bytes(ComputeType compute) {
  if (compute == ComputeType::fp32) return 6;
  return compute == ComputeType::int8 ? 1 : 2;
}

// Layout of packed W [in, out]: step by step, all panels; then for int8 the scale and the sum of every column.
struct Layout {
  std::int64_t in, out, panels, depth, steps;  // depth: of a step, the last one may be shorter
  ComputeType compute;
  bool int8;
  // Of a panel of kPanelCols columns and of the last one, which may be narrower; in a step, and in the last step.
  ReducedProduct whole, last, whole_end, last_end;

  Layout(ComputeType type, std::int64_t k, std::int64_t n)
      : in(k),
        out(n),
        panels(ceil_div(n, kPanelCols)),
        depth(type == ComputeType::fp32 ? std::min(k, step_depth(k)) : k),
        steps(ceil_div(k, depth)),
        compute(type),
        int8(type == ComputeType::int8),
        whole(type, std::min(kPanelCols, n), depth),
        last(type, width(panels - 1), depth),
        whole_end(type, std::min(kPanelCols, n), step_rows(steps - 1)),
        last_end(type, width(panels - 1), step_rows(steps - 1)) {}

  const ReducedProduct& product(std::int64_t step, std::int64_t panel) const {
    if (step + 1 < steps) return panel + 1 < panels ? whole : last;
    return panel + 1 < panels ? whole_end : last_end;
  }
  std::int64_t width(std::int64_t panel) const { return panel_width(out, panel); }
  std::int64_t step_rows(std::int64_t step) const { return std::min(depth, in - step * depth); }
  std::int64_t panel_at(std::int64_t step, std::int64_t panel) const {
    const std::int64_t step_bytes = (panels - 1) * aligned(whole.packed_bytes()) + aligned(last.packed_bytes());
    return step * step_bytes + panel * aligned(product(step, 0).packed_bytes());
  }
  std::int64_t scales_at() const { return panel_at(steps - 1, panels - 1) + aligned(last_end.packed_bytes()); }
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

// One block of rows, rounded a step at a time.
class RoundedRows {
 public:
  // Rows [first, first + rows) of p.x; operands, scales: TaskMemory.
  RoundedRows(const DenseProduct& p, const Layout& layout, std::int64_t first, std::int64_t rows, std::byte* operands,
              float* scales)
      : p_(p),
        layout_(layout),
        first_(first),
        rows_(rows),
        padded_(round_up(rows, kTileRows)),
        operands_(operands),
        scales_(scales) {}

  void round(std::int64_t step) {
    const ReducedProduct& product = layout_.product(step, 0);
    row_bytes_ = product.row_bytes();
    const std::int64_t numbers = layout_.step_rows(step);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const Numbers x = p_.x + ((first_ + i) * p_.x_stride + step * layout_.depth);
      std::byte* const to = operands_ + i * row_bytes_;
      if (layout_.compute == ComputeType::fp32) {
        split_in_bf16(x.fp32, numbers, product.part_bytes() / 2, reinterpret_cast<Bf16*>(to));
        continue;
      }
      const std::int64_t bytes = numbers * operand_bytes(layout_.compute);
      std::memset(to + bytes, 0, static_cast<std::size_t>(row_bytes_ - bytes));
      if (layout_.int8) {
        scales_[i] = quantize_row(x, numbers, reinterpret_cast<std::uint8_t*>(to));
      } else {
        round_to_bf16(x, numbers, reinterpret_cast<Bf16*>(to));
      }
    }
    // Padding rows: any values would do, but the old content of the scratch may contain NaN, which costs time.
    std::memset(operands_ + rows_ * row_bytes_, 0, static_cast<std::size_t>((padded_ - rows_) * row_bytes_));
  }

  const std::byte* row(std::int64_t i) const { return operands_ + i * row_bytes_; }
  const float* scales(std::int64_t row) const { return scales_ + row; }

 private:
  const DenseProduct& p_;
  const Layout& layout_;
  std::int64_t first_, rows_, padded_, row_bytes_ = 0;
  std::byte* operands_;  // [rows rounded up to whole tiles, a step of in]
  float* scales_;        // [rows], int8 only
};

// Data shared by the tiles of a block of rows. packed: W in its Layout; scratch: for a product's run.
struct TileContext {
  const DenseProduct& p;
  const Layout& layout;
  const std::byte* packed;
  const RoundedRows& x;
  std::int64_t first_row;  // of the block
  float* sums;             // of a tile [64, group_cols], int32 for int8; with several steps [tiles][64, out]
  std::byte* scratch;
};

// Where the parts of a task's working memory begin, for at most `rows` rows, a multiple of the tile's.
struct TaskMemory {
  std::int64_t scales, sums, run, bytes;  // the rounded rows come first

  TaskMemory(const Layout& layout, std::int64_t rows)
      : scales(aligned(rows * layout.whole.row_bytes())),
        sums(scales + aligned(rows * 4)),
        run(sums + aligned(4 * (layout.steps == 1 ? kTileRows * kPanelCols : rows * layout.out))),
        bytes(run + aligned(layout.scratch_bytes())) {}
};

// The scales of rows from `row` of the block on and of columns from `column` on.
ByteScales scales_of(const TileContext& c, std::int64_t row, std::int64_t column) {
  if (!c.layout.int8) return {};
  const auto* columns = reinterpret_cast<const float*>(c.packed + c.layout.scales_at());
  const auto* sums = reinterpret_cast<const std::int32_t*>(c.packed + c.layout.sums_at());
  return {c.x.scales(row), columns + column, sums + column};
}

// Rows [row, row + rows) of the block by one step of one panel, a group of columns at a time: the sums of a group are still
// in the first-level cache when they are finished, and its stores drain while the next group is summed.
void multiply_tile(const TileContext& c, std::int64_t step, std::int64_t panel, std::int64_t row, std::int64_t rows) {
  const ReducedProduct& product = c.layout.product(step, panel);
  const std::int64_t width = c.layout.width(panel), height = round_up(rows, kRowStep);
  const std::byte* weights = c.packed + c.layout.panel_at(step, panel);  // packed [depth, width]
  const DenseProduct& p = c.p;
  for (std::int64_t col = 0; col < width; col += product.group_cols()) {
    const std::int64_t cols = std::min(product.group_cols(), width - col), column = panel * kPanelCols + col;
    const std::int64_t y_row = c.first_row + row;
    const MutableNumbers y = p.y + (y_row * p.y_stride + column);
    float* const sums = c.layout.steps == 1 ? c.sums : c.sums + row * c.layout.out + kTileRows * column;  // [64, cols]
    ReducedRun run;
    run.rows = height;
    run.x = c.x.row(row);
    run.packed = weights;
    run.first_col = col;
    run.scratch = c.scratch;
    run.y = sums;
    run.add = step > 0;
    // Rows beyond the last are only prefetched.
    run.next = {y.address(), p.y_stride * y.number_bytes(), y.number_bytes()};
    product.run(run);
    if (step + 1 < c.layout.steps) continue;
    TileEpilogue end;
    end.rows = rows;
    end.cols = cols;
    end.product = sums;
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
struct RowBlock {
  std::int64_t first, rows;
};
void block_of_rows(const DenseProduct& p, const Layout& layout, const std::byte* packed, const RowBlock& block,
                   const TaskMemory& parts, std::byte* memory) {
  const auto [first, rows] = block;
  RoundedRows x(p, layout, first, rows, memory, reinterpret_cast<float*>(memory + parts.scales));
  const TileContext context{
      p, layout, packed, x, first, reinterpret_cast<float*>(memory + parts.sums), memory + parts.run};
  const ReducedUse use(layout.whole);
  for (std::int64_t step = 0; step < layout.steps; ++step) {
    x.round(step);
    for (std::int64_t panel = 0; panel < layout.panels; ++panel) {
      for (std::int64_t row = 0; row < rows; row += kTileRows) {
        multiply_tile(context, step, panel, row, std::min(kTileRows, rows - row));
      }
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
  parallel_for(to.steps * to.panels, [&](std::int64_t task) {
    const std::int64_t step = task / to.panels, panel = task % to.panels;
    const std::int64_t column = panel * kPanelCols, width = to.width(panel);
    const PanelBlock whole{from.weight, from.layout, k, row_stride(from.layout, k, from.n), from.first + column, width};
    const PanelBlock block = rows_of(whole, step * to.depth, to.step_rows(step));
    std::byte* const place = packed + to.panel_at(step, panel);
    if (!to.int8) return to.product(step, panel).round_and_pack(block, place);
    Scratch scratch;
    auto* operands = scratch.take<std::int8_t>(k * width);  // [k, width]
    // All of k at once, because a column's scale is known only after its last number.
    auto* columns = scratch.take<float>(k * width);  // [k, width]
    copy_panel(block, columns);
    quantize_columns(columns, k, width, operands, reinterpret_cast<float*>(packed + to.scales_at()) + column,
                     reinterpret_cast<std::int32_t*>(packed + to.sums_at()) + column);
    to.product(step, panel).pack(operands, place);
  });
}

void multiply_reduced(const DenseProduct& p, ComputeType compute, const std::byte* packed) {
  const Layout layout(compute, p.k, p.n);
  const std::int64_t block = rows_of_task(p.rows, layout);
  const TaskMemory parts(layout, block);
  // The memory of all threads is on the calling thread's stack: which threads get tasks differs from call to call, but the
  // memory that is charged must not.
  Scratch scratch;
  auto* const memory = scratch.take<std::byte>(thread_count() * parts.bytes);
  parallel_for(ceil_div(p.rows, block), [&](std::int64_t task, int thread) {
    const std::int64_t first = task * block;
    block_of_rows(p, layout, packed, {first, std::min(block, p.rows - first)}, parts, memory + thread * parts.bytes);
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

std::int64_t reduced_scratch(ComputeType compute, std::int64_t rows, std::int64_t k, std::int64_t n) {
  const Layout layout(compute, k, n);
  return thread_count() * TaskMemory(layout, rows_of_task(rows, layout)).bytes;
}

std::int64_t reduced_packing_scratch(ComputeType compute, std::int64_t rows, std::int64_t k, std::int64_t n) {
  const std::int64_t group = grouped_columns(compute, k, n);
  // Columns as floats and as bytes; others are rounded or split without a copy.
  const std::int64_t while_packing = compute == ComputeType::int8 ? k * std::min(group, kPanelCols) * 5 : 0;
  return reduced_bytes(compute, k, group) + std::max(while_packing, reduced_scratch(compute, rows, k, group));
}

}  // namespace etc::ops::cpu
