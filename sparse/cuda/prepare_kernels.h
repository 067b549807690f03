// What is made ready before the attention kernels: operands in bf16, relative terms of every query.
#pragma once

#include <cstdint>

#include "sparse/cuda/products.h"

namespace etc::sparse::cuda {

// Rows [rows, N, D] of floats to [N, rows, width] of bf16, zeros beyond D. A thread makes words of two, block y is a
// head.
struct ConvertKernel {
  using Params = ConvertParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = 0;
  static const char* name() { return "attention operands to bf16"; }
  static std::int64_t blocks(std::int64_t rows, int width) { return (rows * (width / 2) + kThreads - 1) / kThreads; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t head = simt::block_y(), words = p.width / 2;
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.rows * words) return;
    const std::int64_t row = i / words;
    const int d = static_cast<int>(i % words) * 2;
    const std::int64_t at = head * p.from.head_stride + row * p.from.row_stride + d;
    const float low = d < p.head_size ? simt::load(p.from.values, at) : 0.0f;
    const float high = d + 1 < p.head_size ? simt::load(p.from.values, at + 1) : 0.0f;
    simt::store(p.to, head * p.rows * words + i, simt::pack_bf16(low, high));
  }
};

// Relative terms of one group and head: block x is a group, block y a head, a thread takes pairs of label and query.
struct TableKernel {
  using Params = TableParams;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocks = 1;
  static constexpr std::int64_t kMaxShared = 0;
  static const char* name() { return "attention relative terms"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t group = simt::block_x(), head = simt::block_y();
    const std::int64_t groups = p.group_rows.size;
    const int head_size = p.sizes.head_size, queries = simt::load(p.group_sizes, group);
    const std::int64_t row = simt::load(p.group_rows, group);
    for (int i = simt::thread_index(); i < p.sizes.labels * kGroup; i += kThreads) {
      const int label = i / kGroup, query = i % kGroup;
      float sum = 0.0f;
      if (query < queries) {
        const std::int64_t q = head * p.q.head_stride + (row + query) * p.q.row_stride;
        const std::int64_t r = (label * p.sizes.heads + head) * head_size;
        for (int d = 0; d < head_size; ++d)
          sum = simt::fma(simt::load(p.q.values, q + d), simt::load(p.rel, r + d), sum);
        if (p.rel_bias.size > 0) sum += simt::load(p.rel_bias, label * p.sizes.heads + head);
      }
      simt::store(p.table, (head * groups + group) * p.sizes.labels * kGroup + i, sum * p.sizes.scale);
    }
  }
};

}  // namespace etc::sparse::cuda
