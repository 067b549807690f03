// Weight gradients in bf16: dw += aᵀ·b.
//
// A chunk of tokens is rounded once (copied if it is bf16) into the order in which the products read it, and then
// used for all of dw:
//
//     a: 64 columns at a time, transposed      b: panels of 192 columns, packed           dw
//                 block 0   block 1                 ┌───────┬───────┬─                 ┌───────┬───────┬─
//               ┌─────────┬─────────┬─              │       │       │ block 0          │  +=   │       │
//     tile 0    │         │         │         ·     ├───────┼───────┼─          =      ├───────┼───────┼─
//               ├─────────┼─────────┼─              │       │       │ block 1          │       │       │
//
// A tile of dw is 64 by 192; each group of its columns adds the blocks of 512 tokens in order, each of them one product.
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
constexpr std::int64_t kTilesPerTask = 4;       // which share a panel of b while it is in cache
constexpr std::int64_t kChunkBytes = 16 << 20;  // of rounded tokens, unless one block of them is more
// The last block is padded with zeros to a multiple of this, so that there are few shapes of products.
constexpr std::int64_t kTokenStep = 64;

// The product for tiles of dw: [64, tokens]·[tokens, width], tokens rounded up to the step.
ReducedProduct product_of(std::int64_t width, std::int64_t tokens) {
  return ReducedProduct(ComputeType::bf16, width, round_up(tokens, kTokenStep));
}

// The distance between rows of a's tiles, in numbers.
std::int64_t row_numbers(std::int64_t width, std::int64_t tokens) {
  return product_of(width, tokens).row_bytes() / static_cast<std::int64_t>(sizeof(Bf16));
}

// Sizes of a chunk's rounded operands.
struct Chunk {
  std::int64_t tokens, tiles, panels;  // tokens: a multiple of 512, unless there are fewer in all
  std::int64_t a_numbers;              // of a block: [tiles * 64, padded tokens]
  std::int64_t panel_bytes;            // room of one packed panel of a block

  Chunk(std::int64_t rows, std::int64_t p, std::int64_t q)
      : tokens(std::min(rows, std::max<std::int64_t>(1, kChunkBytes / (2 * (p + q) * kTokenBlock)) * kTokenBlock)),
        tiles(ceil_div(p, kTileHigh)),
        panels(ceil_div(q, kPanelCols)),
        a_numbers(tiles * kTileHigh * row_numbers(panel_width(q, 0), std::min(kTokenBlock, tokens))),
        panel_bytes(round_up(product_of(panel_width(q, 0), std::min(kTokenBlock, tokens)).packed_bytes(), 64)) {}

  std::int64_t token_blocks() const { return ceil_div(tokens, kTokenBlock); }
  std::int64_t bytes() const { return token_blocks() * (2 * a_numbers + panels * panel_bytes); }
};

// The rounded operands of one chunk, block by block, and their products.
class RoundedTokens {
 public:
  // first: the chunk's first token in g; count: at most the tokens of a chunk.
  RoundedTokens(const WeightGradient& g, const Chunk& chunk, std::int64_t first, std::int64_t count, std::byte* memory)
      : g_(g),
        chunk_(chunk),
        first_(first),
        count_(count),
        a_(reinterpret_cast<Bf16*>(memory + chunk.token_blocks() * chunk.panels * chunk.panel_bytes)),
        b_(memory) {}

  // Rounds both operands, each number once: a task takes one tile of a or one panel of b for all blocks.
  void round() const {
    parallel_for(chunk_.tiles + chunk_.panels, [&](std::int64_t task) {
      if (task < chunk_.tiles) {
        round_tile(task);
      } else {
        round_panel(task - chunk_.tiles);
      }
    });
  }

  // dw += all blocks. A task owns its part of dw, so the sums need no lock and their order is fixed.
  void multiply() const {
    const std::int64_t groups = ceil_div(chunk_.tiles, kTilesPerTask);
    parallel_for(groups * chunk_.panels, [&](std::int64_t task) {
      const std::int64_t first = task % groups * kTilesPerTask;
      add_tiles(first, std::min(chunk_.tiles, first + kTilesPerTask), task / groups);
    });
  }

 private:
  std::int64_t block_count() const { return ceil_div(count_, kTokenBlock); }
  std::int64_t block_tokens(std::int64_t block) const { return std::min(kTokenBlock, count_ - block * kTokenBlock); }
  std::int64_t padded_tokens(std::int64_t block) const { return round_up(block_tokens(block), kTokenStep); }
  // a, transposed: [64, padded tokens]; rows are a_row() numbers apart.
  Bf16* a_tile(std::int64_t block, std::int64_t tile) const {
    return a_ + block * chunk_.a_numbers + tile * kTileHigh * a_row(block);
  }
  std::int64_t a_row(std::int64_t block) const { return row_numbers(panel_width(g_.q, 0), block_tokens(block)); }
  // b, packed: [padded tokens, up to 192 columns].
  std::byte* b_panel(std::int64_t block, std::int64_t panel) const {
    return b_ + (block * chunk_.panels + panel) * chunk_.panel_bytes;
  }

  void round_tile(std::int64_t tile) const {
    const std::int64_t col = tile * kTileHigh, cols = std::min(kTileHigh, g_.p - col);
    for (std::int64_t block = 0; block < block_count(); ++block) {
      const std::int64_t tokens = block_tokens(block), padded = a_row(block);
      const Numbers a = g_.a + ((first_ + block * kTokenBlock) * g_.a_stride + col);
      Bf16* to = a_tile(block, tile);  // [64, padded]; rows beyond p are zeros
      round_to_bf16_turned(a, g_.a_stride, tokens, cols, padded, to);
      std::fill(to + cols * padded, to + kTileHigh * padded, Bf16{});
      if (g_.a_sums != nullptr) add_column_sums(tokens, cols, a, g_.a_stride, g_.a_sums + col);
    }
  }

  void round_panel(std::int64_t panel) const {
    const std::int64_t col = panel * kPanelCols, cols = panel_width(g_.q, panel);
    Scratch scratch;
    auto* rounded = scratch.take<Bf16>(kTokenBlock * cols);  // [512, cols]
    for (std::int64_t block = 0; block < block_count(); ++block) {
      const std::int64_t tokens = block_tokens(block), padded = padded_tokens(block);
      const Numbers b = g_.b + ((first_ + block * kTokenBlock) * g_.b_stride + col);
      for (std::int64_t i = 0; i < tokens; ++i) round_to_bf16(b + i * g_.b_stride, cols, rounded + i * cols);
      std::fill(rounded + tokens * cols, rounded + padded * cols, Bf16{});
      product_of(cols, tokens).pack(rounded, b_panel(block, panel));
      if (g_.b_sums != nullptr) add_column_sums(tokens, cols, b, g_.b_stride, g_.b_sums + col);
    }
  }

  // The blocks of a part of dw come last, so that the part stays in the first-level cache.
  void add_tiles(std::int64_t first_tile, std::int64_t end_tile, std::int64_t panel) const {
    const std::int64_t width = panel_width(g_.q, panel), last = block_count() - 1;
    const ReducedProduct whole = product_of(width, block_tokens(0)), rest = product_of(width, block_tokens(last));
    const std::int64_t group = whole.group_cols();
    Scratch scratch;
    auto* sums = scratch.take<float>(kTileHigh * width);  // [64, group of columns] of one product
    auto* of_run = scratch.take<std::byte>(std::max(whole.scratch_bytes(kTileHigh), rest.scratch_bytes(kTileHigh)));
    const ReducedUse use(whole);
    for (std::int64_t tile = first_tile; tile < end_tile; ++tile) {
      for (std::int64_t col = 0; col < width; col += group) {
        TileEpilogue end;
        end.rows = std::min(kTileHigh, g_.p - tile * kTileHigh);
        end.cols = std::min(group, width - col);
        end.product = sums;
        end.product_stride = end.cols;
        end.add = true;
        end.y = g_.dw + tile * kTileHigh * g_.q + panel * kPanelCols + col;
        end.y_stride = g_.q;
        for (std::int64_t block = 0; block <= last; ++block) {
          const ReducedProduct& product = block < last ? whole : rest;
          product.run({kTileHigh, a_tile(block, tile), b_panel(block, panel), col, of_run, sums});
          finish_tile(end);
        }
      }
    }
  }

  const WeightGradient& g_;
  const Chunk& chunk_;
  std::int64_t first_, count_;  // tokens of g
  Bf16* a_;                     // [blocks][tiles][64, padded tokens]
  std::byte* b_;                // [blocks][panels][panel_bytes]
};

}  // namespace

void weight_gradient_bf16(const WeightGradient& g) {
  const Chunk chunk(g.rows, g.p, g.q);
  Scratch scratch;
  auto* memory = scratch.take<std::byte>(chunk.bytes());
  for (std::int64_t first = 0; first < g.rows; first += chunk.tokens) {
    const RoundedTokens tokens(g, chunk, first, std::min(chunk.tokens, g.rows - first), memory);
    tokens.round();
    tokens.multiply();
  }
}

std::int64_t weight_gradient_bf16_scratch(std::int64_t rows, std::int64_t p, std::int64_t q) {
  return Chunk(rows, p, q).bytes();
}

}  // namespace etc::ops::cpu
