// Preparation before the attention kernels: conversion of operands to bf16 (the terms' table: score_terms.h).
#pragma once

#include <cstdint>

#include "etc_core/base/integers.h"
#include "sparse/cuda/products.h"

namespace etc::sparse::cuda {

// Converts float rows [rows, N, D] to bf16 [N, rows, width], zeros beyond D. A thread makes words of two numbers, block
// y is a head. This is done once per call and operand, not per block that reads it, because several blocks read a key
// tile.
struct ConvertKernel : simt::BlockOf<256> {
  using Params = ConvertParams;
  static const char* name() { return "attention operands to bf16"; }
  static std::int64_t blocks(std::int64_t rows, int width) { return ceil_div(rows * (width / 2), kThreads); }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t head = simt::block_y(), words = p.width / 2;
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.rows * words) return;
    const std::int64_t row = i / words;
    const int d = static_cast<int>(i % words) * 2;
    // Components beyond D become zeros, so the padded width does not change the products.
    const std::int64_t at = head * p.from.head_stride + row * p.from.row_stride + d;
    const float low = d < p.head_size ? simt::load(p.from.values, at) : 0.0f;
    const float high = d + 1 < p.head_size ? simt::load(p.from.values, at + 1) : 0.0f;
    simt::store(p.to, head * p.rows * words + i, simt::pack_bf16(low, high));
  }
};

}  // namespace etc::sparse::cuda
