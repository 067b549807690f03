// Tiles of 64 rows (fewer at the end) by 192 columns, as in fp32, so that no row knows its position. A task takes a
// block of rows, rounds them once, and walks the panels: a panel of weights stays in the second-level cache while the
// block's tiles use it.
#include "etc_core/ops/cpu/linear_reduced.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/quantize.h"
#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/cpu/tile_height.h"

namespace etc::ops::cpu {

namespace {

constexpr std::int64_t kPanelCols = 192;
// Of one block of rounded rows: with a panel of weights it fits a second-level cache of 2 MiB.
constexpr std::int64_t kBlockBytes = 1 << 20;
constexpr std::int64_t kTasksPerThread = 4;

std::int64_t blocks(std::int64_t size, std::int64_t block) {
  return (size + block - 1) / block;
}

std::int64_t aligned(std::int64_t bytes) {
  return blocks(bytes, 64) * 64;
}

// Where things lie in PackedWeights::bytes: all panels, then for int8 the scale and the sum of every column.
struct Layout {
  std::int64_t in, out, panels;
  ComputeType compute;
  bool int8;
  ReducedProduct whole, last;  // of a panel of kPanelCols columns; of the last one, which may be narrower

  explicit Layout(const PackedWeights& packed)
      : in(packed.in),
        out(packed.out),
        panels(blocks(packed.out, kPanelCols)),
        compute(packed.compute),
        int8(packed.compute == ComputeType::int8),
        whole(packed.compute, kTileRows, std::min(kPanelCols, packed.out), packed.in),
        last(packed.compute, kTileRows, packed.out - (panels - 1) * kPanelCols, packed.in) {}

  // For the tile of `rows` rows.
  ReducedProduct product(std::int64_t panel, std::int64_t rows) const {
    const ReducedProduct& full = product(panel);
    const std::int64_t height = reduced_tile_height(compute, rows, width(panel), in);
    return height == kTileRows ? full : ReducedProduct(compute, height, width(panel), in);
  }
  const ReducedProduct& product(std::int64_t panel) const { return panel + 1 < panels ? whole : last; }
  std::int64_t width(std::int64_t panel) const { return std::min(kPanelCols, out - panel * kPanelCols); }
  std::int64_t panel_at(std::int64_t panel) const { return panel * aligned(whole.packed_bytes()); }
  std::int64_t scales_at() const { return panel_at(panels - 1) + aligned(last.packed_bytes()); }
  std::int64_t sums_at() const { return scales_at() + aligned(out * 4); }
  std::int64_t bytes() const { return int8 ? sums_at() + aligned(out * 4) : scales_at(); }
  std::int64_t operand_bytes() const { return int8 ? 1 : 2; }
  std::int64_t scratch_bytes() const { return std::max(whole.scratch_bytes(), last.scratch_bytes()); }
};

// Columns of a panel as signed bytes, with their scales and sums.   w [in, width] -> bytes [in, width]
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

  RoundedRows(const LinearForward& a, const Layout& layout, std::int64_t first, std::int64_t rows, Scratch& scratch)
      : row_bytes(a.in * layout.operand_bytes()) {
    const std::int64_t padded = blocks(rows, kTileRows) * kTileRows;
    operands = scratch.take<std::byte>(padded * row_bytes);
    scales = scratch.take<float>(padded);
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* x = a.x + (first + i) * a.x_stride;
      std::byte* to = operands + i * row_bytes;
      if (layout.int8) {
        scales[i] = quantize_row(x, a.in, reinterpret_cast<std::uint8_t*>(to));
      } else {
        round_to_bf16(x, a.in, reinterpret_cast<std::uint16_t*>(to));
      }
    }
    // Rows that are not there: any numbers would do, but not what the scratch last held (a NaN costs time).
    std::memset(operands + rows * row_bytes, 0, static_cast<std::size_t>((padded - rows) * row_bytes));
  }
};

void block_of_rows(const LinearForward& a, const Layout& layout, std::int64_t first, std::int64_t rows) {
  Scratch scratch;
  const RoundedRows x(a, layout, first, rows, scratch);
  auto* product = scratch.take<float>(kTileRows * kPanelCols);
  auto* library_scratch = scratch.take<std::byte>(layout.scratch_bytes());
  const auto* packed = static_cast<const std::byte*>(a.packed->bytes.data());
  for (std::int64_t panel = 0; panel < layout.panels; ++panel) {
    const std::int64_t first_col = panel * kPanelCols, width = layout.width(panel);
    for (std::int64_t tile = 0; tile < rows; tile += kTileRows) {
      const std::int64_t tile_rows = std::min(kTileRows, rows - tile);
      layout.product(panel, tile_rows)
          .run(x.operands + tile * x.row_bytes, packed + layout.panel_at(panel), library_scratch, product);
      if (layout.int8) {
        const auto* scales = reinterpret_cast<const float*>(packed + layout.scales_at()) + first_col;
        const auto* sums = reinterpret_cast<const std::int32_t*>(packed + layout.sums_at()) + first_col;
        for (std::int64_t i = 0; i < tile_rows; ++i) {
          float* row = product + i * width;
          dequantize_row(reinterpret_cast<const std::int32_t*>(row), width, sums, x.scales[tile + i], scales, row);
        }
      }
      TileEpilogue end;
      end.rows = tile_rows;
      end.cols = width;
      end.product = product;
      end.product_stride = width;
      end.bias = a.bias == nullptr ? nullptr : a.bias + first_col;
      end.activation = a.activation;
      if (a.pre_activation != nullptr) end.z = a.pre_activation + (first + tile) * a.out + first_col;
      end.z_stride = a.out;
      end.y = a.y + (first + tile) * a.y_stride + first_col;
      end.y_stride = a.y_stride;
      finish_tile(end);
    }
  }
}

}  // namespace

std::int64_t reduced_bytes(const PackedWeights& packed) {
  return Layout(packed).bytes();
}

void pack_reduced(const float* weight, WeightLayout layout, Purpose purpose, PackedWeights& packed) {
  if (!cpu_offers(packed.compute)) {
    fail("pack_weights", "this processor has no {} products: expected AMX, or AVX-512 with {} (use --compute fp32)",
         compute_type_name(packed.compute), packed.compute == ComputeType::bf16 ? "BF16" : "VNNI");
  }
  const Layout to(packed);
  packed.bytes = Bytes(to.bytes(), purpose);
  auto* bytes = static_cast<std::byte*>(packed.bytes.data());
  parallel_for(to.panels, [&](std::int64_t panel) {
    const std::int64_t first = panel * kPanelCols, width = to.width(panel);
    Scratch scratch;
    auto* columns = scratch.take<float>(packed.in * width);  // [in, width]
    for (std::int64_t i = 0; i < packed.in; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        columns[i * width + j] =
            layout == WeightLayout::in_out ? weight[i * packed.out + first + j] : weight[(first + j) * packed.in + i];
      }
    }
    auto* operands = scratch.take<std::byte>(packed.in * width * to.operand_bytes());
    if (to.int8) {
      quantize_columns(columns, packed.in, width, reinterpret_cast<std::int8_t*>(operands),
                       reinterpret_cast<float*>(bytes + to.scales_at()) + first,
                       reinterpret_cast<std::int32_t*>(bytes + to.sums_at()) + first);
    } else {
      round_to_bf16(columns, packed.in * width, reinterpret_cast<std::uint16_t*>(operands));
    }
    to.product(panel).pack(operands, bytes + to.panel_at(panel));
  });
}

void linear_reduced(const LinearForward& a) {
  const Layout layout(*a.packed);
  // How many rows a task has decides nothing but time: tiles are tiles.
  const std::int64_t fitting = std::max<std::int64_t>(1, kBlockBytes / (kTileRows * a.in * layout.operand_bytes()));
  const std::int64_t tiles = blocks(a.rows, kTileRows);
  const std::int64_t fair = blocks(tiles, kTasksPerThread * thread_count());
  const std::int64_t block = std::min(fitting, fair) * kTileRows;
  parallel_for(blocks(a.rows, block), [&](std::int64_t task) {
    const std::int64_t first = task * block;
    block_of_rows(a, layout, first, std::min(block, a.rows - first));
  });
}

}  // namespace etc::ops::cpu
