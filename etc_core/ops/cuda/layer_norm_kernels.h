// Layer normalisation with the residual sum and dropout before it, one row per block, so a row's result depends on that
// row alone.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/row_sums.h"

namespace etc::ops::cuda {

inline constexpr int kNormThreads = 128;
// One float per warp of a block, as block_sum() in fp32 requires.
inline constexpr std::int64_t kNormShared = kNormThreads / 32 * static_cast<std::int64_t>(sizeof(float));
inline constexpr int kNormRows = 64;  // rows of one partial sum of dgamma, dbeta

// y = (s − mean)·rstd·gamma + beta with s = x + dropout(branch), in three passes over the row. The variance is that of
// the centred values: E[s²] − E[s]² would not be accurate enough for an epsilon of 1e-12.
struct LayerNormKernel : simt::BlockOf<kNormThreads> {
  using Params = LayerNormParams;
  static const char* name() { return "layer norm"; }

  static ETC_DEVICE void run(const Params& p) {
    simt::SharedArena arena;
    const auto shared = arena.take<float>(kThreads / simt::kWarp);  // [warps]
    const std::int64_t row = simt::block_x(), base = row * p.cols;  // the row is elements [base, base + H)
    const float cols = static_cast<float>(p.cols);

    // Pass 1: the residual sum, kept in `sum` or, until it is overwritten, in y; its mean. A thread reads back only
    // elements that it wrote itself.
    const Span<float>& kept = p.sum.size == 0 ? p.y : p.sum;
    const bool summed = p.branch.size > 0;
    const RowStream stream = row_stream(p.dropout, row);
    float total = 0.0f;
    for (std::int64_t c = simt::thread_index(); c < p.cols; c += kThreads) {
      float value = simt::load(p.x, base + c);
      if (summed) {
        value += dropped(p.dropout, stream, c, simt::load(p.branch, base + c));
        simt::store(kept, base + c, value);
      }
      total += value;
    }
    const float row_mean = block_sum<kThreads>(total, shared) / cols;
    const float mean = p.centred ? row_mean : 0.0f;

    // Pass 2: the variance of the centred values.
    float squares = 0.0f;
    for (std::int64_t c = simt::thread_index(); c < p.cols; c += kThreads) {
      const float centred = (summed ? simt::load(kept, base + c) : simt::load(p.x, base + c)) - mean;
      squares = simt::fma(centred, centred, squares);
    }
    // Every thread of the block has the same sum, so mean and rstd need no broadcast.
    const float rstd = 1.0f / simt::sqrt(block_sum<kThreads>(squares, shared) / cols + p.epsilon);

    // Pass 3: the result. y may hold s until here; a thread reads its own element before it overwrites it.
    const auto result = [&](std::int64_t c) {
      const float value = summed ? simt::load(kept, base + c) : simt::load(p.x, base + c);
      return simt::fma((value - mean) * rstd, simt::load(p.gamma, c), simt::load(p.beta, c));
    };
    if (p.y_bf16.size == 0) {
      for (std::int64_t c = simt::thread_index(); c < p.cols; c += kThreads) simt::store(p.y, base + c, result(c));
    } else {
      // One thread reads both numbers of a word, although other threads may have written them: the barriers of
      // block_sum were in between.
      for (std::int64_t c = 2 * simt::thread_index(); c < p.cols; c += 2 * kThreads) {
        const float low = result(c), high = result(c + 1);
        simt::store(p.y, base + c, low);
        simt::store(p.y, base + c + 1, high);
        simt::store(p.y_bf16, (base + c) / 2, simt::pack_bf16(low, high));
      }
    }
    if (simt::thread_index() == 0 && p.mean.size > 0) {
      simt::store(p.mean, row, mean);
      simt::store(p.rstd, row, rstd);
    }
  }
};

// ds = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma; written to dx and, through dropout, to dbranch.
struct LayerNormBackwardKernel : simt::BlockOf<kNormThreads> {
  using Params = LayerNormBackwardParams;
  static const char* name() { return "layer norm backward"; }

  static ETC_DEVICE void run(const Params& p) {
    simt::SharedArena arena;
    const auto shared = arena.take<float>(kThreads / simt::kWarp);
    const std::int64_t row = simt::block_x(), base = row * p.cols;
    const float cols = static_cast<float>(p.cols);
    const float mean = simt::load(p.mean, row), rstd = simt::load(p.rstd, row);
    // Pass 1: the sums over the row of g and of g·xhat.
    float g_total = 0.0f, gx_total = 0.0f;
    for (std::int64_t c = simt::thread_index(); c < p.cols; c += kThreads) {
      const float xhat = (simt::load(p.sum, base + c) - mean) * rstd;
      const float g = simt::load(p.dy, base + c) * simt::load(p.gamma, c);
      g_total += g;
      gx_total = simt::fma(g, xhat, gx_total);
    }
    const float g_sum = block_sum<kThreads>(g_total, shared);
    const float g_mean = p.centred ? g_sum / cols : 0.0f;
    const float gx_mean = block_sum<kThreads>(gx_total, shared) / cols;
    // Pass 2: ds. g and xhat are recomputed, which costs less than storing them. dx may be dy, because each element is
    // read before it is written.
    const bool pairs = p.dbranch_bf16.size > 0, to_branch = pairs || p.dbranch.size > 0;
    const RowStream stream = to_branch ? row_stream(p.dropout, row) : RowStream{};
    // For column c: writes dx and returns dbranch.
    const auto gradient = [&](std::int64_t c) {
      const float xhat = (simt::load(p.sum, base + c) - mean) * rstd;
      const float g = simt::load(p.dy, base + c) * simt::load(p.gamma, c);
      const float ds = rstd * simt::fma(-xhat, gx_mean, g - g_mean);
      if (p.dx.size > 0) simt::store(p.dx, base + c, p.add_to_dx ? simt::load(p.dx, base + c) + ds : ds);
      return to_branch ? dropped(p.dropout, stream, c, ds) : 0.0f;
    };
    if (pairs) {
      for (std::int64_t c = 2 * simt::thread_index(); c < p.cols; c += 2 * kThreads) {
        const float low = gradient(c), high = gradient(c + 1);
        simt::store(p.dbranch_bf16, (base + c) / 2, simt::pack_bf16(low, high));
      }
    } else {
      for (std::int64_t c = simt::thread_index(); c < p.cols; c += kThreads) {
        const float branch = gradient(c);
        if (to_branch) simt::store(p.dbranch, base + c, branch);
      }
    }
  }
};

// Partial sums of dgamma and dbeta: block x is kNormRows rows, block y a panel of columns, a thread a column, so that
// adjacent threads read adjacent numbers of a row.
struct LayerNormPartialKernel : simt::BlockOf<kNormThreads> {
  using Params = LayerNormTablesParams;
  static const char* name() { return "layer norm partial sums"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_y() * kThreads + simt::thread_index();
    if (column >= p.cols) return;
    const std::int64_t first = simt::block_x() * kNormRows;
    const std::int64_t end = first + kNormRows < p.rows ? first + kNormRows : p.rows;
    float dgamma = 0.0f, dbeta = 0.0f;  // of this column over the block's rows, to partial [blocks, 2, H]
    for (std::int64_t row = first; row < end; ++row) {
      const float dy = simt::load(p.dy, row * p.cols + column);
      const float xhat = (simt::load(p.sum, row * p.cols + column) - simt::load(p.mean, row)) * simt::load(p.rstd, row);
      dgamma = simt::fma(dy, xhat, dgamma);
      dbeta += dy;
    }
    simt::store(p.partial, simt::block_x() * 2 * p.cols + column, dgamma);
    simt::store(p.partial, simt::block_x() * 2 * p.cols + p.cols + column, dbeta);
  }
};

// dgamma, dbeta [H] += partial [blocks, 2, H], in the order of the blocks: a thread takes a column.
struct LayerNormTablesKernel : simt::BlockOf<kNormThreads> {
  using Params = LayerNormTablesParams;
  static const char* name() { return "layer norm sums"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_x() * kThreads + simt::thread_index();
    if (column >= p.cols) return;
    float dgamma = simt::load(p.dgamma, column), dbeta = simt::load(p.dbeta, column);
    for (std::int64_t at = column; at < p.partial.size; at += 2 * p.cols) {
      dgamma += simt::load(p.partial, at);
      dbeta += simt::load(p.partial, at + p.cols);
    }
    simt::store(p.dgamma, column, dgamma);
    simt::store(p.dbeta, column, dbeta);
  }
};

}  // namespace etc::ops::cuda
