// Updates on the CPU. They are bound by memory, not arithmetic: plain loops that the compiler vectorises for any x86-64
// (see ops/CMakeLists.txt) reach the memory bandwidth and give the same bits on every processor.
#include <algorithm>
#include <cmath>

#include "etc_core/base/parallel.h"
#include "etc_core/base/sums.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/update.h"

namespace etc::ops::cpu {

namespace {

// Calls body(block, index) for every block, in parallel.
template <typename Body>
void for_each_block(UpdateBlocks blocks, const Body& body) {
  parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    body(blocks[at], at);
  });
}

// m = β₁m + (1−β₁)g and v = β₂v + (1−β₂)g² for the n numbers of a block. __restrict tells the compiler
// that the arrays do not overlap, so that it vectorises without checks.
void block_moments(const UpdateConstants& c, const float* __restrict g, std::int64_t n, float* __restrict m,
                   float* __restrict v) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * c.gradient_scale;
    m[i] = c.beta_1 * m[i] + c.one_minus_beta_1 * gradient;
    v[i] = c.beta_2 * v[i] + c.one_minus_beta_2 * (gradient * gradient);
  }
}

// The update before multiplication by the learning rate. LAMB computes it twice, for ‖u‖ and for w, instead of storing
// it.
inline float update_of(float m, float v, float w, float epsilon, float decay) {
  return m / (std::sqrt(v) + epsilon) + decay * w;
}

struct WeightStep {
  float epsilon, decay, rate;
};

// w −= rate·u for a block [n]. `step` is passed by value so that stores to w cannot alias it.
void block_weights(const float* __restrict m, const float* __restrict v, std::int64_t n, WeightStep step,
                   float* __restrict w) {
  for (std::int64_t i = 0; i < n; ++i) w[i] -= step.rate * update_of(m[i], v[i], w[i], step.epsilon, step.decay);
}

// ‖w‖² and ‖u‖² of one block, for LAMB's ratio.
UpdateNorms block_norms(const UpdateBlock& block, float epsilon) {
  constexpr std::int64_t kPart = 512;  // the updates of a part stay in the first-level cache until they are summed
  float update[kPart];                 // [count] u of a part
  UpdateNorms sums;
  for (std::int64_t first = 0; first < block.count; first += kPart) {
    const std::int64_t count = std::min(kPart, block.count - first);
    const float *m = block.m + first, *v = block.v + first, *w = block.w + first;
    for (std::int64_t i = 0; i < count; ++i) update[i] = update_of(m[i], v[i], w[i], epsilon, block.decay);
    sums.weights += etc::sum_of_squares(w, count);
    sums.update += etc::sum_of_squares(update, count);
  }
  return sums;
}

void weights_of(const UpdateConstants& constants, const UpdateBlock& block) {
  block_weights(block.m, block.v, block.count, {constants.epsilon, block.decay, block.rate}, block.w);
}

void gradient_squares(UpdateBlocks blocks, double* sums) {
  for_each_block(
      blocks, [&](const UpdateBlock& block, std::size_t at) { sums[at] = etc::sum_of_squares(block.g, block.count); });
}

void update_moments(const UpdateConstants& constants, UpdateBlocks blocks, UpdateNorms* norms) {
  // If no norm is needed, the weights are updated while the block is in the cache.
  for_each_block(blocks, [&](const UpdateBlock& block, std::size_t at) {
    block_moments(constants, block.g, block.count, block.m, block.v);
    if (block.adapted) {
      norms[at] = block_norms(block, constants.epsilon);
    } else {
      weights_of(constants, block);
    }
  });
}

void update_weights(const UpdateConstants& constants, UpdateBlocks blocks) {
  for_each_block(blocks, [&](const UpdateBlock& block, std::size_t) { weights_of(constants, block); });
}

}  // namespace

// Never called in counting mode.
void register_update() {
  fill_slot_computing(gradient_squares_kernel, gradient_squares);
  fill_slot_computing(update_moments_kernel, update_moments);
  fill_slot_computing(update_weights_kernel, update_weights);
}

}  // namespace etc::ops::cpu
