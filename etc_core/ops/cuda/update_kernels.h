// Updates of optimisers, one block of threads per UpdateBlock: all parameters in one launch. The arithmetic equals the
// CPU's operation by operation, so new weights have the same bits; norms are summed in another fixed order.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/row_sums.h"

namespace etc::ops::cuda {

struct UpdateKernel : simt::BlockOf<256> {
  using Params = UpdateParams;
  static constexpr std::int64_t kShared = kThreads * static_cast<std::int64_t>(sizeof(double));
  static const char* name() { return "optimiser update"; }

  // c·x + d·y, rounded after every operation.
  static ETC_DEVICE float blend(float c, float x, float d, float y) {
    return simt::add(simt::multiply(c, x), simt::multiply(d, y));
  }
  // u = m/(sqrt(v)+ε) + λw
  static ETC_DEVICE float update_of(float m, float v, float w, float epsilon, float decay) {
    return simt::add(m / simt::add(simt::sqrt(v), epsilon), simt::multiply(decay, w));
  }

  static ETC_DEVICE void run(const Params& p) {
    simt::SharedArena arena;
    const auto shared = arena.take<double>(kThreads);  // [threads]
    const UpdateBlock block = simt::load(p.blocks, simt::block_x());
    const UpdateConstants& c = p.constants;
    const Span<const float> g{block.g, block.count};  // [count], at most kBlockSize, like m, v and w
    const Span<float> m{block.m, block.count}, v{block.v, block.count}, w{block.w, block.count};
    // This thread's part of the block's two sums: w² and u² of adapted blocks, or g² and 0 in the pass for squares.
    double weights = 0, update = 0;
    for (std::int64_t i = simt::thread_index(); i < block.count; i += kThreads) {
      if (p.pass == UpdatePass::squares) {
        const double gradient = simt::load(g, i);
        weights += gradient * gradient;
        continue;
      }
      float first = simt::load(m, i), second = simt::load(v, i);
      if (p.pass == UpdatePass::moments) {
        const float gradient = simt::multiply(simt::load(g, i), c.gradient_scale);
        first = blend(c.beta_1, first, c.one_minus_beta_1, gradient);
        second = blend(c.beta_2, second, c.one_minus_beta_2, simt::multiply(gradient, gradient));
        simt::store(m, i, first);
        simt::store(v, i, second);
      }
      const float weight = simt::load(w, i), u = update_of(first, second, weight, c.epsilon, block.decay);
      if (p.pass == UpdatePass::moments && block.adapted) {
        weights += static_cast<double>(weight) * weight;
        update += static_cast<double>(u) * u;
      } else {
        simt::store(w, i, simt::add(weight, -simt::multiply(block.rate, u)));
      }
    }
    // The condition is the same for all threads of the launch, so all threads of a block reach the barriers in
    // block_sum().
    if (p.sums.size == 0) return;
    weights = block_sum<kThreads>(weights, shared);
    update = block_sum<kThreads>(update, shared);
    if (simt::thread_index() != 0) return;
    simt::store(p.sums, 2 * simt::block_x(), weights);
    simt::store(p.sums, 2 * simt::block_x() + 1, update);
  }
};

}  // namespace etc::ops::cuda
