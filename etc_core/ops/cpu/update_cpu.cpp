// Updates on the CPU. The bits are the same on every processor: every number is computed by the same single operations,
// none of them fused, in vectors of any width. The optimizer's arrays are read from memory and written back once per step;
// divisions and square roots of four numbers at a time would take longer than that.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/update_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/number_lanes-inl.h"
#include "etc_core/ops/cpu/squares.h"
#include "etc_core/ops/update.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using UpdateTag = hn::ScalableTag<float>;
using UpdateVec = hn::Vec<UpdateTag>;

// The update before multiplication by the learning rate: m/(sqrt(v) + epsilon) + decay w. LAMB computes it twice, for
// ‖u‖ and for w, instead of storing it.
HWY_INLINE UpdateVec update_of(UpdateVec m, UpdateVec v, UpdateVec w, float epsilon, float decay) {
  const UpdateTag d;
  const auto adapted = hn::Div(m, hn::Add(hn::Sqrt(v), hn::Set(d, epsilon)));
  return hn::Add(adapted, hn::Mul(hn::Set(d, decay), w));
}

// w - rate u
HWY_INLINE UpdateVec moved(const UpdateBlock& block, float epsilon, UpdateVec m, UpdateVec v, UpdateVec w) {
  return hn::Sub(w, hn::Mul(hn::Set(UpdateTag(), block.rate), update_of(m, v, w, epsilon, block.decay)));
}

// m = β₁m + (1−β₁)g and v = β₂v + (1−β₂)g². kMoves: and w −= rate·u, where no norm must be known first.
template <bool kMoves>
void block_moments(const UpdateConstants& c, const UpdateBlock& block) {
  const UpdateTag d;
  const auto beta_1 = hn::Set(d, c.beta_1), beta_2 = hn::Set(d, c.beta_2), scale = hn::Set(d, c.gradient_scale);
  const auto rest_1 = hn::Set(d, c.one_minus_beta_1), rest_2 = hn::Set(d, c.one_minus_beta_2);
  for_vectors(block.count, [&](auto lanes, std::int64_t i) HWY_ATTR {
    const auto gradient = hn::Mul(lanes.load(d, block.g + i), scale);
    const auto m = hn::Add(hn::Mul(beta_1, lanes.load(d, block.m + i)), hn::Mul(rest_1, gradient));
    const auto squares = hn::Mul(rest_2, hn::Mul(gradient, gradient));
    const auto v = hn::Add(hn::Mul(beta_2, lanes.load(d, block.v + i)), squares);
    lanes.store(d, m, block.m + i);
    lanes.store(d, v, block.v + i);
    if constexpr (kMoves) lanes.store(d, moved(block, c.epsilon, m, v, lanes.load(d, block.w + i)), block.w + i);
  });
}

void moments_and_weights(const UpdateConstants& c, const UpdateBlock& block) {
  block.adapted ? block_moments<false>(c, block) : block_moments<true>(c, block);
}

// w −= rate·u
void block_weights(float epsilon, const UpdateBlock& block) {
  const UpdateTag d;
  for_vectors(block.count, [&](auto lanes, std::int64_t i) HWY_ATTR {
    const auto m = lanes.load(d, block.m + i), v = lanes.load(d, block.v + i), w = lanes.load(d, block.w + i);
    lanes.store(d, moved(block, epsilon, m, v, w), block.w + i);
  });
}

// update = u of `count` numbers from `first` on.
void block_updates(const UpdateBlock& block, float epsilon, std::int64_t first, std::int64_t count, float* update) {
  const UpdateTag d;
  const float *const m = block.m + first, *const v = block.v + first, *const w = block.w + first;
  for_vectors(count, [&](auto lanes, std::int64_t i) HWY_ATTR {
    const auto own = update_of(lanes.load(d, m + i), lanes.load(d, v + i), lanes.load(d, w + i), epsilon, block.decay);
    lanes.store(d, own, update + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
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

// ‖w‖² and ‖u‖² of one block, for LAMB's ratio.
UpdateNorms block_norms(const UpdateBlock& block, float epsilon) {
  constexpr std::int64_t kPart = 512;  // the updates of a part stay in the first-level cache until they are summed
  float update[kPart];                 // [count] u of a part
  UpdateNorms sums;
  for (std::int64_t first = 0; first < block.count; first += kPart) {
    const std::int64_t count = std::min(kPart, block.count - first);
    ETC_DISPATCH(block_updates)(block, epsilon, first, count, update);
    sums.weights += sum_of_squares(block.w + first, count);
    sums.update += sum_of_squares(update, count);
  }
  return sums;
}

void gradient_squares(UpdateBlocks blocks, double* sums) {
  for_each_block(blocks,
                 [&](const UpdateBlock& block, std::size_t at) { sums[at] = sum_of_squares(block.g, block.count); });
}

void update_moments(const UpdateConstants& constants, UpdateBlocks blocks, UpdateNorms* norms) {
  for_each_block(blocks, [&](const UpdateBlock& block, std::size_t at) {
    ETC_DISPATCH(moments_and_weights)(constants, block);
    if (block.adapted) norms[at] = block_norms(block, constants.epsilon);
  });
}

void update_weights(const UpdateConstants& constants, UpdateBlocks blocks) {
  for_each_block(blocks, [&](const UpdateBlock& block, std::size_t) {
    ETC_DISPATCH(block_weights)(constants.epsilon, block);
  });
}

}  // namespace

// Never called in counting mode.
void register_update() {
  fill_slot_computing(gradient_squares_kernel, gradient_squares);
  fill_slot_computing(update_moments_kernel, update_moments);
  fill_slot_computing(update_weights_kernel, update_weights);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
