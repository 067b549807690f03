// Element-wise kernels on arrays of bf16. A thread takes a word (two adjacent numbers), computes in fp32 and rounds as
// it writes.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/elementwise_kernels.h"

namespace etc::ops::cuda {

// y = a + b.
struct AddBf16Kernel : simt::BlockOf<kElementThreads> {
  using Params = AddBf16Params;
  static const char* name() { return "sum in bf16"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.y.size) return;
    const std::uint32_t a = simt::load(p.a, i), b = simt::load(p.b, i);
    simt::store(p.y, i,
                simt::pack_bf16(simt::low_bf16(a) + simt::low_bf16(b), simt::high_bf16(a) + simt::high_bf16(b)));
  }
};

// y = x.
struct RoundKernel : simt::BlockOf<kElementThreads> {
  using Params = RoundParams;
  static const char* name() { return "numbers to bf16"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.y.size) return;
    simt::store(p.y, i, simt::pack_bf16(simt::load(p.x, 2 * i), simt::load(p.x, 2 * i + 1)));
  }
};

// act(x), or dy act'(x).
struct ActivationBf16Kernel : simt::BlockOf<kElementThreads> {
  using Params = ActivationBf16Params;
  static const char* name() { return "activation in bf16"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.out.size) return;
    const std::uint32_t x = simt::load(p.x, i);
    float low = simt::low_bf16(x), high = simt::high_bf16(x);
    if (p.dy.size == 0) {
      low = ActivationKernel::forward(p.activation, low);
      high = ActivationKernel::forward(p.activation, high);
    } else {
      const std::uint32_t dy = simt::load(p.dy, i);
      low = simt::low_bf16(dy) * ActivationKernel::slope(p.activation, low);
      high = simt::high_bf16(dy) * ActivationKernel::slope(p.activation, high);
    }
    simt::store(p.out, i, simt::pack_bf16(low, high));
  }
};

}  // namespace etc::ops::cuda
