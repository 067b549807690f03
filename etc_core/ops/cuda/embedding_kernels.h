// Sums of table rows, and the gradient of a table from tokens sorted by id: the CPU's sums in the CPU's order.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/simt.h"
#include "etc_core/ops/cuda/params.h"

namespace etc::ops::cuda {

inline constexpr int kEmbeddingThreads = 128;
inline constexpr int kEmbeddingSum = 64;  // tokens summed before they are added to the total, for accuracy

// e = base + tokens + segments + positions + adder, those that exist: a block takes one row.
struct EmbeddingKernel : simt::BlockOf<kEmbeddingThreads> {
  using Params = EmbeddingParams;
  static const char* name() { return "embedding"; }

  // A sum that starts with its first term, because adding to zero would turn -0 into 0.
  struct Sum {
    float value = 0.0f;
    bool any = false;
    ETC_DEVICE void add(float term) {
      value = any ? value + term : term;
      any = true;
    }
  };

  // Adds the element of one table's row, if the table is present and the id is within it.
  static ETC_DEVICE void add_row(const EmbeddingTable& term, std::int64_t row, std::int64_t column, std::int64_t cols,
                                 Sum& sum) {
    if (term.table.size == 0) return;
    const std::int64_t id = simt::load(term.ids, row);
    if (id >= 0 && id < term.limit) sum.add(simt::load(term.table, id * cols + column));
  }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t row = simt::block_x();
    // The order of the terms is the CPU's. All threads of a block read the same three ids, so each read is a broadcast.
    for (std::int64_t column = simt::thread_index(); column < p.cols; column += kThreads) {
      Sum sum;
      if (p.base.size > 0) sum.add(simt::load(p.base, row * p.cols + column));
      add_row(p.tokens, row, column, p.cols, sum);
      add_row(p.segments, row, column, p.cols, sum);
      add_row(p.positions, row, column, p.cols, sum);
      if (p.adder.size > 0) sum.add(simt::load(p.adder, row * p.cols + column));
      simt::store(p.e, row * p.cols + column, sum.value);
    }
  }
};

// dtable[id] += the rows of its tokens, in token order: block x is a distinct id, block y a panel of columns, a thread
// a column. So only one thread adds to an element of dtable: no atomics are needed, and tokens of an id are added in
// order.
struct EmbeddingBackwardKernel : simt::BlockOf<kEmbeddingThreads> {
  using Params = EmbeddingBackwardParams;
  static const char* name() { return "embedding backward"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t column = simt::block_y() * kThreads + simt::thread_index();
    if (column >= p.cols) return;
    const std::int32_t begin = simt::load(p.first, simt::block_x()), end = simt::load(p.first, simt::block_x() + 1);
    const std::int64_t place = simt::load(p.ids, begin) * p.cols + column;
    float total = simt::load(p.dtable, place);
    // The tokens of this id are at [begin, end) of `tokens`; a sum of up to 64 of them starts with a value, not with 0.
    for (std::int32_t block = begin; block < end; block += kEmbeddingSum) {
      const std::int32_t last = block + kEmbeddingSum < end ? block + kEmbeddingSum : end;
      float sum = simt::load(p.de, simt::load(p.tokens, block) * p.cols + column);
      for (std::int32_t i = block + 1; i < last; ++i)
        sum += simt::load(p.de, simt::load(p.tokens, i) * p.cols + column);
      total += sum;
    }
    simt::store(p.dtable, place, total);
  }
};

}  // namespace etc::ops::cuda
