// Weight gradients in bf16, or in fp32 from bf16 parts: dw (= or +=) aᵀ·b.
//
// 512 tokens at a time are rounded (bf16: copied; fp32: split) once into the order in which the products read them, and
// then used for all of dw:
//
//     a: 64 columns at a time, transposed      b: panels of 192 columns, packed           dw
//               ┌───────────────────┐           ┌───────┬───────┬─                 ┌───────┬───────┬─
//     tile 0    │    512 tokens     │           │       │       │                  │  +=   │       │
//               ├───────────────────┤     ·     │       │       │          =       ├───────┼───────┼─
//     tile 1    │                   │           │       │       │                  │       │       │
//               ├───────────────────┤           └───────┴───────┴─                 ├───────┼───────┼─
//
// A tile of dw is 64 by 192; its sums go on from block to block of 512 tokens, in order: a product starts at dw (the first
// one, where dw is written, at zero) instead of being added to it afterwards (0.97 of the CPU time of a training step in bf16). A panel of a block (fp32: 590 KB) stays
// in the second-level cache for all tiles of a task. Several blocks at a time would save passes over dw, but their operands
// would come from memory: fp32 [768, 768] 131 GFLOP/s with six blocks and 256 with one, bf16 565 and 631.
#include <algorithm>
#include <cstddef>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/panels.h"
#include "etc_core/ops/cpu/quantize.h"
#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/cpu/weight_gradient.h"

namespace etc::ops::cpu {

namespace {

constexpr std::int64_t kTileHigh = 64;          // rows of a tile of dw: columns of a
constexpr std::int64_t kMostTilesPerTask = 16;  // which share a panel of b while it is in cache
// The last block is padded with zeros to a multiple of this, so that there are few shapes of products.
constexpr std::int64_t kTokenStep = 64;

// The rounded operands of one block of tokens, and their products.
class RoundedTokens {
 public:
  // tokens: at most kTokenBlock.
  RoundedTokens(ComputeType compute, std::int64_t tokens, std::int64_t p, std::int64_t q)
      : compute_(compute),
        tokens_(tokens),
        p_(p),
        q_(q),
        tiles_(ceil_div(p, kTileHigh)),
        panels_(ceil_div(q, kPanelCols)),
        whole_(product(0)),
        last_(product(panels_ - 1)),
        row_(whole_.row_bytes() / static_cast<std::int64_t>(sizeof(Bf16))) {}

  std::int64_t bytes() const {
    return panels_ * panel_bytes() + tiles_ * kTileHigh * row_ * static_cast<std::int64_t>(sizeof(Bf16));
  }

  // The products of the first tokens of g. memory: bytes().
  void multiply(const WeightGradient& g, std::byte* memory) const {
    auto* const a = reinterpret_cast<Bf16*>(memory + panels_ * panel_bytes());  // [tiles][64, row_]
    // Each number is rounded once: a task takes one tile of a or one panel of b.
    parallel_for(tiles_ + panels_, [&](std::int64_t task) {
      if (task < tiles_) {
        round_tile(g, task, a + task * kTileHigh * row_);
      } else {
        round_panel(g, task - tiles_, memory + (task - tiles_) * panel_bytes());
      }
    });
    // A task owns its part of dw, so the sums need no lock and their order is fixed.
    const std::int64_t of_task = tiles_of_task(), groups = ceil_div(tiles_, of_task);
    parallel_for(groups * panels_, [&](std::int64_t task) {
      const std::int64_t tile = task % groups * of_task, panel = task / groups;
      multiply_tiles(g, tile, std::min(tiles_, tile + of_task), panel, a, memory + panel * panel_bytes());
    });
  }

 private:
  // For tiles of dw: [64, tokens]·[tokens, width], tokens rounded up to the step.
  ReducedProduct product(std::int64_t panel) const {
    return ReducedProduct(compute_, panel_width(q_, panel), padded_tokens());
  }
  std::int64_t padded_tokens() const { return round_up(tokens_, kTokenStep); }
  std::int64_t panel_bytes() const { return round_up(whole_.packed_bytes(), 64); }

  // Few enough for two tasks per thread. The bits are the same for any number.
  std::int64_t tiles_of_task() const {
    const std::int64_t tasks = thread_count() == 1 ? 1 : 2 * thread_count();
    return std::clamp<std::int64_t>(tiles_ * panels_ / tasks, 1, std::min(tiles_, kMostTilesPerTask));
  }

  // to [64, row_]: 64 columns of a, transposed; rows beyond p are zeros.
  void round_tile(const WeightGradient& g, std::int64_t tile, Bf16* to) const {
    const std::int64_t col = tile * kTileHigh, cols = std::min(kTileHigh, p_ - col);
    const Numbers a = g.a + col;
    if (compute_ == ComputeType::fp32) {
      split_in_bf16_turned(a.fp32, g.a_stride, {tokens_, cols, padded_tokens(), row_, to});
    } else {
      round_to_bf16_turned(a, g.a_stride, {tokens_, cols, row_, row_, to});
    }
    std::fill(to + cols * row_, to + kTileHigh * row_, Bf16{});
    if (g.a_sums != nullptr) add_column_sums(tokens_, cols, a, g.a_stride, g.a_sums + col);
  }

  // to: up to 192 columns of b, packed.
  void round_panel(const WeightGradient& g, std::int64_t panel, std::byte* to) const {
    const std::int64_t col = panel * kPanelCols, cols = panel_width(q_, panel);
    const Numbers b = g.b + col;
    const ReducedProduct& packing = panel + 1 < panels_ ? whole_ : last_;
    if (compute_ == ComputeType::fp32) {
      packing.round_and_pack({b.fp32, WeightLayout::in_out, tokens_, g.b_stride, 0, cols}, to);
    } else {
      Scratch scratch;
      auto* rounded = scratch.take<Bf16>(padded_tokens() * cols);
      for (std::int64_t i = 0; i < tokens_; ++i) round_to_bf16(b + i * g.b_stride, cols, rounded + i * cols);
      std::fill(rounded + tokens_ * cols, rounded + padded_tokens() * cols, Bf16{});
      packing.pack(rounded, to);
    }
    if (g.b_sums != nullptr) add_column_sums(tokens_, cols, b, g.b_stride, g.b_sums + col);
  }

  // dw of the tiles [tile, end_tile) and one panel (= or +=) their products.   a [tiles][64, row_]
  void multiply_tiles(const WeightGradient& g, std::int64_t tile, std::int64_t end_tile, std::int64_t panel,
                      const Bf16* a, const std::byte* b) const {
    const ReducedProduct& of_panel = panel + 1 < panels_ ? whole_ : last_;
    const std::int64_t width = panel_width(q_, panel), group = of_panel.group_cols();
    const ReducedUse use(of_panel);
    for (; tile < end_tile; ++tile) {
      for (std::int64_t col = 0; col < width; col += group) {
        ReducedRun run;
        run.rows = std::min(kTileHigh, p_ - tile * kTileHigh);
        run.x = a + tile * kTileHigh * row_;
        run.packed = b;
        run.first_col = col;
        run.y = g.dw + tile * kTileHigh * q_ + panel * kPanelCols + col;
        run.y_row_bytes = q_ * static_cast<std::int64_t>(sizeof(float));
        run.add = g.add;
        of_panel.run(run);
      }
    }
  }

  ComputeType compute_;
  std::int64_t tokens_, p_, q_, tiles_, panels_;
  ReducedProduct whole_, last_;  // of a panel of 192 columns, and of the last one
  std::int64_t row_;             // numbers from row to row of a's tiles
};

}  // namespace

void weight_gradient_reduced(ComputeType compute, const WeightGradient& g) {
  const RoundedTokens whole(compute, std::min(kTokenBlock, g.rows), g.p, g.q);
  Scratch scratch;
  auto* memory = scratch.take<std::byte>(whole.bytes());
  WeightGradient rest = g;
  for (; rest.rows >= kTokenBlock; rest = rest.after(kTokenBlock)) whole.multiply(rest, memory);
  if (rest.rows > 0) RoundedTokens(compute, rest.rows, g.p, g.q).multiply(rest, memory);
}

std::int64_t weight_gradient_reduced_scratch(ComputeType compute, std::int64_t rows, std::int64_t p, std::int64_t q) {
  return RoundedTokens(compute, std::min(kTokenBlock, rows), p, q).bytes();
}

}  // namespace etc::ops::cpu
