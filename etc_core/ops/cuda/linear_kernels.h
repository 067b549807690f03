// Kernels of dense layers around the library's product: rounding of operands to bf16, bias and activation where the
// library does not fuse them, column sums in a fixed order.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/elementwise_kernels.h"

namespace etc::ops::cuda {

inline constexpr int kColumnThreads = 128;  // four warps, each reads 128 consecutive bytes of a row of floats
inline constexpr int kColumnRows = 64;      // rows of one partial sum

// y = act(y + bias), storing y + bias in z if requested: block x is a row, block y a panel of columns, a thread a
// column.
struct FinishRowsKernel : simt::BlockOf<kColumnThreads> {
  using Params = FinishRowsParams;
  static const char* name() { return "bias and activation"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_y() * kThreads + simt::thread_index(), row = simt::block_x();
    if (column >= p.cols) return;
    float value = simt::load(p.y, row * p.stride + column);
    if (p.bias.size > 0) value += simt::load(p.bias, column);
    if (p.z.size > 0) simt::store(p.z, row * p.cols + column, value);
    simt::store(p.y, row * p.stride + column, ActivationKernel::forward(p.activation, value));
  }
};

// Rows as bf16, padded with zeros to a width: a thread takes two adjacent numbers of block x's row and writes them as
// one word, which halves the stores.
struct RoundRowsKernel : simt::BlockOf<kColumnThreads> {
  using Params = RoundRowsParams;
  static const char* name() { return "rows to bf16"; }

  // from [rows, cols], rows `stride` apart; zero in the padding.
  static ETC_DEVICE float number(const Params& p, std::int64_t row, std::int64_t column) {
    return column < p.cols ? simt::load(p.from, row * p.stride + column) : 0.0f;
  }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t pair = simt::block_y() * kThreads + simt::thread_index(), row = simt::block_x();
    if (2 * pair >= p.width) return;
    simt::store(p.to, row * (p.width / 2) + pair,
                simt::pack_bf16(number(p, row, 2 * pair), number(p, row, 2 * pair + 1)));
  }
};

// Copies rows of words and appends rows of zeros: block x is a row, block y a panel of columns, a thread a column.
struct CopyRowsKernel : simt::BlockOf<kColumnThreads> {
  using Params = CopyRowsParams;
  static const char* name() { return "copy of rows"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_y() * kThreads + simt::thread_index(), row = simt::block_x();
    if (column >= p.cols) return;
    simt::store(p.to, row * p.to_stride + column,
                row < p.from_rows ? simt::load(p.from, row * p.from_stride + column) : 0u);
  }
};

// partial [blocks, cols] = sums of columns of x [rows, cols]: block x is kColumnRows rows, block y a panel of columns,
// a thread a column.
struct ColumnPartialKernel : simt::BlockOf<kColumnThreads> {
  using Params = ColumnSumParams;
  static const char* name() { return "partial column sums"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_y() * kThreads + simt::thread_index();
    if (column >= p.cols) return;
    const std::int64_t first = simt::block_x() * kColumnRows;
    const std::int64_t end = first + kColumnRows < p.rows ? first + kColumnRows : p.rows;
    float sum = 0.0f;
    if (p.x.size > 0) {
      for (std::int64_t row = first; row < end; ++row) sum += simt::load(p.x, row * p.stride + column);
    } else {
      // Two adjacent numbers share a word.
      for (std::int64_t row = first; row < end; ++row) {
        const std::uint32_t pair = simt::load(p.x_bf16, (row * p.stride + column) / 2);
        sum += column % 2 == 0 ? simt::low_bf16(pair) : simt::high_bf16(pair);
      }
    }
    simt::store(p.partial, simt::block_x() * p.cols + column, sum);
  }
};

// sums [cols] += partial [blocks, cols], in the order of the blocks: a thread takes a column. The order of the two-step
// sum depends on the number of rows alone.
struct ColumnSumKernel : simt::BlockOf<kColumnThreads> {
  using Params = ColumnSumParams;
  static const char* name() { return "column sums"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_x() * kThreads + simt::thread_index();
    if (column >= p.cols) return;
    float sum = simt::load(p.sums, column);
    for (std::int64_t at = column; at < p.partial.size; at += p.cols) sum += simt::load(p.partial, at);
    simt::store(p.sums, column, sum);
  }
};

}  // namespace etc::ops::cuda
