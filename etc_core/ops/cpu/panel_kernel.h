// The fp32 product of one tile of a dense layer, and the packed layout of the weights that it reads. There are two
// implementations: oneDNN's sgemm (library_panels.cpp), which is faster with AVX-512, and our own micro-kernel
// (strip_panels.cpp).
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/panels.h"

namespace etc::ops::cpu {

// y [rows, width] (= or, with `add`, +=) x [rows, depth] · rows [begin, begin + depth) of a panel
struct PanelTile {
  std::int64_t rows, width, depth;
  const float* x;  // [rows, depth], rows x_stride apart
  std::int64_t x_stride;
  const float* panel;  // all k rows, packed
  std::int64_t k, begin;
  float* y;  // [rows, width], rows y_stride apart
  std::int64_t y_stride;
  bool add;
};

struct PanelKernel {
  // Rows of a tile: what the caches favour, and a smaller number for products that would have too few tiles otherwise.
  std::int64_t tile_rows, fewer_rows;
  // Most tiles of a task that use one step's part of a panel before the next step's part is read.
  std::int64_t tiles_of_step;
  // Packs the columns of W in `block` as multiply() reads them: block.k · block.cols numbers.
  void (*pack)(const PanelBlock& block, float* panel);
  // Runs on the calling thread. The bits of a row of y depend on this row of x and y and on the panel, not on the row's
  // position or the number of rows.
  void (*multiply)(const PanelTile& tile);
};

extern const PanelKernel kLibraryPanels;  // with ETC_ONEDNN only
extern const PanelKernel kStripPanels;

// The implementation that this process uses.
const PanelKernel& panel_kernel();

// product_library() (library_versions.h) if our own micro-kernels are used, which need no version: fused multiply-adds in
// order give the same bits on every processor; products of bf16 parts (reduced_product.h) do on every one with AMX.
inline constexpr const char* kOwnProducts = "own products";
inline constexpr const char* kProductsOfParts = "own products of bf16 parts (AMX), sums over all tokens";

}  // namespace etc::ops::cpu
