// Softmax over a vocabulary, one row per block, sums in double. Labels were checked on the host.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/row_sums.h"

namespace etc::ops::cuda {

struct VocabularySoftmaxKernel : simt::BlockOf<256> {
  using Params = VocabularySoftmaxParams;
  static constexpr std::int64_t kShared = kThreads * static_cast<std::int64_t>(sizeof(double));
  static const char* name() { return "vocabulary softmax"; }

  static ETC_DEVICE void run(const Params& p) {
    simt::SharedArena arena;
    const auto shared = arena.take<double>(kThreads);  // [threads] for all sums and maxima, in turn
    const std::int64_t row = simt::block_x(), begin = row * p.vocabulary;
    const std::int32_t label = simt::load(p.labels, row);
    const double at_label = static_cast<double>(simt::load(p.z, begin + label));

    // Pass 1: the largest logit and its first index. A thread takes entries thread, thread + kThreads, …
    double largest = -static_cast<double>(simt::infinity()), place = static_cast<double>(p.vocabulary);
    for (std::int64_t v = simt::thread_index(); v < p.vocabulary; v += kThreads) {
      const double z = static_cast<double>(simt::load(p.z, begin + v));
      if (z <= largest || largest != largest) continue;
      largest = z;
      place = static_cast<double>(v);
    }
    const double of_row = block_max<kThreads>(largest, shared);
    // The smallest index, computed as a maximum of negated indices; a nan equals nothing, so no index qualifies.
    const double first = -block_max<kThreads>(largest == of_row ? -place : -static_cast<double>(p.vocabulary), shared);

    // Pass 2: the sum of the exponentials.
    double sum = 0;
    for (std::int64_t v = simt::thread_index(); v < p.vocabulary; v += kThreads) {
      sum += simt::exp(static_cast<double>(simt::load(p.z, begin + v)) - of_row);
    }
    sum = block_sum<kThreads>(sum, shared);
    const double log_sum = simt::log(sum), each = p.smoothing / static_cast<double>(p.vocabulary);
    if (p.smoothed.size > 0) {
      double logits = 0;
      for (std::int64_t v = simt::thread_index(); v < p.vocabulary; v += kThreads) {
        logits += static_cast<double>(simt::load(p.z, begin + v));
      }
      logits = block_sum<kThreads>(logits, shared);
      const double loss = log_sum + (of_row - at_label), lse = log_sum + of_row;
      const double of_all = lse - logits / static_cast<double>(p.vocabulary);
      if (simt::thread_index() == 0) {
        simt::store(p.smoothed, row, p.smoothing > 0 ? (1 - p.smoothing) * loss + p.smoothing * of_all : loss);
      }
    }
    if (simt::thread_index() == 0) {
      simt::store(p.losses, row, log_sum + (of_row - at_label));
      simt::store(p.best_log_p, row, -log_sum);
      simt::store(p.best, row, first < static_cast<double>(p.vocabulary) ? static_cast<std::int32_t>(first) : 0);
    }

    // Pass 3: dz = scale·(p − (1−ε)[v = label] − ε/V) overwrites the logits; after the barriers above all threads have
    // read them.
    if (!p.gradient) return;
    for (std::int64_t v = simt::thread_index(); v < p.vocabulary; v += kThreads) {
      const double z = static_cast<double>(simt::load(p.z, begin + v));
      const double probability = simt::exp(z - of_row) / sum;
      const double wanted = v == label ? (1.0 - p.smoothing) + each : each;
      simt::store(p.z, begin + v, static_cast<float>(p.scale * (probability - wanted)));
    }
  }
};

}  // namespace etc::ops::cuda
