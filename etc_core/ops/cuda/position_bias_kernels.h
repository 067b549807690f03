// Biases of relative positions (etc_core/ops/position_bias.h), forward and backward.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/simt.h"
#include "etc_core/ops/cuda/params.h"

namespace etc::ops::cuda {

inline constexpr int kPositionBiasThreads = 128;

// (v - u) of component c of all heads.
ETC_DEVICE float bias_difference(const PositionBiasParams& p, std::int64_t c) {
  const float position = p.position.size > 0 ? simt::load(p.position, c) : 0.0f;
  return position - (p.content.size > 0 ? simt::load(p.content, c) : 0.0f);
}

// A thread takes one row and head and adds its components in order.
struct PositionBiasKernel : simt::BlockOf<kPositionBiasThreads> {
  using Params = PositionBiasParams;
  static const char* name() { return "position bias"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.rows * p.heads) return;
    const std::int64_t first = i % p.heads * p.head_size;
    float sum = 0.0f;
    for (std::int64_t d = 0; d < p.head_size; ++d) {
      sum = simt::fma(bias_difference(p, first + d), simt::load(p.rel, i * p.head_size + d), sum);
    }
    simt::store(p.y, i, sum);
  }
};

// A thread adds one component over all rows in order, so no two threads add to the same element.
struct PositionBiasBackwardKernel : simt::BlockOf<kPositionBiasThreads> {
  using Params = PositionBiasParams;
  static const char* name() { return "position bias backward"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t c = simt::block_x() * kThreads + simt::thread_index(), width = p.heads * p.head_size;
    if (c >= width) return;
    const float by = bias_difference(p, c);
    float sum = 0.0f;
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const std::int64_t place = r * width + c;
      const float own = simt::load(p.dy, r * p.heads + c / p.head_size);
      sum = simt::fma(own, simt::load(p.rel, place), sum);
      if (p.drel.size > 0) simt::store(p.drel, place, simt::fma(own, by, simt::load(p.drel, place)));
    }
    if (p.dposition.size > 0) simt::store(p.dposition, c, simt::load(p.dposition, c) + sum);
    if (p.dcontent.size > 0) simt::store(p.dcontent, c, simt::load(p.dcontent, c) - sum);
  }
};

}  // namespace etc::ops::cuda
