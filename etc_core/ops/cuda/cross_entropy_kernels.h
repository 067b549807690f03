// Softmax cross-entropy, one group per block, in double as on the CPU. Targets were checked on the host.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/row_sums.h"

namespace etc::ops::cuda {

struct CrossEntropyKernel : simt::BlockOf<128> {
  using Params = CrossEntropyParams;
  static constexpr std::int64_t kShared = kThreads * static_cast<std::int64_t>(sizeof(double));
  static const char* name() { return "cross-entropy"; }

  // Whether element i of all logits takes part in its group's softmax.
  static ETC_DEVICE bool counts(const Params& p, std::int64_t i) {
    return p.counted.size == 0 || simt::load(p.counted, i) != 0;
  }
  static ETC_DEVICE double logit(const Params& p, std::int64_t i) {
    return static_cast<double>(simt::load(p.logits, i * p.stride));
  }

  static ETC_DEVICE void run(const Params& p) {
    simt::SharedArena arena;
    const auto shared = arena.take<double>(kThreads);  // [threads] for all sums and the maximum, in turn
    const std::int64_t group = simt::block_x();
    const std::int64_t begin = simt::load(p.offsets, group), end = simt::load(p.offsets, group + 1);
    // A thread takes elements first, first + kThreads, … of the group, so adjacent threads read adjacent logits.
    const std::int64_t first = begin + simt::thread_index();
    const std::int32_t index = p.target_index.size == 0 ? 0 : simt::load(p.target_index, group);

    // Pass 1: the number of counted elements, their maximum, the sum of the targets.
    double counted = 0, largest = -static_cast<double>(simt::infinity()), targets = 0;
    for (std::int64_t i = first; i < end; i += kThreads) {
      if (!counts(p, i)) continue;
      counted += 1;
      const double z = logit(p, i);
      if (!(z <= largest)) largest = z;
      if (p.target.size > 0) targets += static_cast<double>(simt::load(p.target, i));
    }
    counted = block_sum<kThreads>(counted, shared);
    largest = block_max<kThreads>(largest, shared);
    targets = p.target.size > 0 ? block_sum<kThreads>(targets, shared) : 1;
    // The group has no loss. No early return: all threads of the block must reach the barriers in block_sum().
    const bool idle = index == -1 || counted == 0;

    // Pass 2: log-sum-exp.
    double sum = 0;
    for (std::int64_t i = first; i < end && !idle; i += kThreads) {
      if (counts(p, i)) sum += simt::exp(logit(p, i) - largest);
    }
    sum = block_sum<kThreads>(sum, shared);
    const double lse = idle ? 0 : largest + simt::log(sum);

    // Pass 3: loss = sum t (lse - z), dz = scale (p sum t - t). A logit is read before its gradient overwrites it.
    const double spread = idle ? 0 : p.label_smoothing / counted;
    double loss = 0;
    for (std::int64_t i = first; i < end; i += kThreads) {
      double gradient = 0;
      if (!idle && counts(p, i)) {
        const double hit = p.target.size > 0    ? static_cast<double>(simt::load(p.target, i))
                           : i == begin + index ? 1.0 - p.label_smoothing
                                                : 0.0;
        const double t = hit + spread, z = logit(p, i);
        if (t != 0) loss += t * (lse - z);
        gradient = p.scale * (simt::exp(z - lse) * targets - t);
      }
      if (p.dlogits.size > 0) simt::store(p.dlogits, i * p.stride, static_cast<float>(gradient));
    }
    loss = block_sum<kThreads>(loss, shared);
    if (simt::thread_index() == 0) simt::store(p.losses, group, loss);
  }
};

}  // namespace etc::ops::cuda
