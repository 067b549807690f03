// Sums of table rows, and the gradient of a table: tokens sorted by id, every id summed in token order.
#include <algorithm>
#include <cstring>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/scratch.h"
#include "etc_core/ops/embedding.h"

namespace etc::ops::cpu {

namespace {

constexpr std::int64_t kTaskRows = 32;      // of a forward task
constexpr std::int64_t kTaskColumns = 256;  // of a backward task
constexpr std::int64_t kSumBlock = 64;      // tokens summed before they are added to the total, for accuracy
const float* term_row(const EmbeddingTerm& term, std::int64_t row, std::int64_t cols) {
  if (term.table == nullptr) return nullptr;
  const std::int64_t id = term.ids[row];
  return id >= 0 && id < term.limit ? term.table + id * cols : nullptr;
}

void embedding(const EmbeddingForward& args) {
  const std::int64_t cols = args.cols;
  parallel_for(ceil_div(args.rows, kTaskRows), [&](std::int64_t task) {
    const std::int64_t end = std::min(args.rows, (task + 1) * kTaskRows);
    for (std::int64_t row = task * kTaskRows; row < end; ++row) {
      const float* terms[] = {args.base == nullptr ? nullptr : args.base + row * cols, term_row(args.tokens, row, cols),
                              term_row(args.segments, row, cols), term_row(args.positions, row, cols),
                              args.adder == nullptr ? nullptr : args.adder + row * cols};
      // The terms are added in this order. Absent terms are skipped, so they cost nothing and cannot change bits.
      // Column by column, because e may be base or adder.
      const float* given[5];  // [count] rows [H]
      int count = 0;
      for (const float* term : terms) {
        if (term != nullptr) given[count++] = term;
      }
      float* e = args.e + row * cols;
      if (count == 0) {
        std::fill(e, e + cols, 0.0f);
      } else if (count == 1) {
        if (given[0] != e) std::memcpy(e, given[0], static_cast<std::size_t>(cols) * sizeof(float));
      } else {
        for (std::int64_t col = 0; col < cols; ++col) {
          float sum = given[0][col];
          for (int i = 1; i < count; ++i) sum += given[i][col];
          e[col] = sum;
        }
      }
    }
  });
}

void embedding_backward(const EmbeddingBackward& args) {
  const std::int64_t cols = args.cols;
  Scratch scratch;
  // One word per token, id above position: sorting the words is a stable sort by id.
  auto* order = scratch.take<std::uint64_t>(args.rows);        // [kept]
  auto* first_of = scratch.take<std::int64_t>(args.rows + 1);  // [distinct + 1] into order
  std::int64_t kept = 0;
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const std::int64_t id = args.ids[row];
    if (id < 0 || id >= args.limit) continue;
    order[kept++] = static_cast<std::uint64_t>(id) << 32 | static_cast<std::uint32_t>(row);
  }
  std::sort(order, order + kept);
  std::int64_t distinct = 0;
  for (std::int64_t i = 0; i < kept; ++i) {
    if (i == 0 || order[i] >> 32 != order[i - 1] >> 32) first_of[distinct++] = i;
  }
  first_of[distinct] = kept;

  // The columns are split into tasks as well, because segment tables have few rows with thousands of tokens each.
  const std::int64_t panels = ceil_div(cols, kTaskColumns);
  parallel_for(distinct * panels, [&](std::int64_t task) {
    const std::int64_t which = task / panels;
    const std::int64_t col = task % panels * kTaskColumns;
    const std::int64_t width = std::min(kTaskColumns, cols - col);
    const std::int64_t begin = first_of[which], end = first_of[which + 1];  // the tokens of one id, in order
    // [width] a row of the table: only this task writes it.
    float* total = args.dtable + static_cast<std::int64_t>(order[begin] >> 32) * cols + col;
    const auto gradient_row = [&](std::int64_t i) {
      return args.de + static_cast<std::int64_t>(order[i] & 0xFFFFFFFFu) * cols + col;
    };
    for (std::int64_t block = begin; block < end; block += kSumBlock) {
      float sums[kTaskColumns];  // [width] of this block of tokens
      const float* first = gradient_row(block);
      std::copy(first, first + width, sums);
      for (std::int64_t i = block + 1; i < std::min(end, block + kSumBlock); ++i) {
        const float* row = gradient_row(i);
        for (std::int64_t c = 0; c < width; ++c) sums[c] += row[c];
      }
      for (std::int64_t c = 0; c < width; ++c) total[c] += sums[c];
    }
  });
}

}  // namespace

void register_embedding() {
  fill_slot(embedding_kernel, embedding);
  embedding_backward_kernel.fill(Device::cpu, embedding_backward);
  embedding_backward_kernel.fill(Device::counting, [](const EmbeddingBackward& a) {
    count_scratch((2 * a.rows + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)));  // order and first_of
  });
}

}  // namespace etc::ops::cpu
