// Element-wise kernels. A thread takes one element; sums run over fixed blocks of elements in a fixed order.
#pragma once

#include <cstdint>

#include "etc_core/ops/cuda/row_sums.h"

namespace etc::ops::cuda {

// Threads per block. The blocks cover all elements; threads of the last block that have no element return at once.
inline constexpr int kElementThreads = 256;
inline constexpr std::int64_t kSumElements = 1 << 14;  // elements of one block's sum

// y = a + b, a + s·b or s·a; axpy rounds twice like the CPU, so nvcc must not fuse the operations (simt::add,
// simt::multiply).
struct ElementwiseKernel : simt::BlockOf<kElementThreads> {
  using Params = ElementwiseParams;
  static const char* name() { return "elementwise"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.y.size) return;
    const float a = simt::load(p.a, i);
    switch (p.kind) {
      case Binary::add:
        return simt::store(p.y, i, a + simt::load(p.b, i));
      case Binary::axpy:
        return simt::store(p.y, i, simt::add(a, simt::multiply(p.s, simt::load(p.b, i))));
      case Binary::scale:
        return simt::store(p.y, i, a * p.s);
    }
  }
};

// act(x), or dy act'(x).
struct ActivationKernel : simt::BlockOf<kElementThreads> {
  using Params = ActivationParams;
  static const char* name() { return "activation"; }

  // gelu(x) = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x³)
  static ETC_DEVICE float forward(Activation activation, float x) {
    constexpr float kRoot = 0.7978845608f, kCube = 0.044715f;
    if (activation == Activation::relu) return x < 0.0f ? 0.0f : x;
    if (activation == Activation::tanh) return simt::tanh(x);
    if (activation == Activation::gelu) return 0.5f * x * (1.0f + simt::tanh(kRoot * (x + kCube * x * x * x)));
    if (activation == Activation::gelu_erf) return x < -kFar ? 0.0f : x * phi(x);
    return x;
  }

  // Phi(x), the cumulative normal distribution, by the formula in activation-inl.h. 0 or 1 beyond kFar.
  static constexpr float kFar = 20.0f;
  static ETC_DEVICE float exp(float x) { return simt::exp2(1.4426950408889634f * x); }
  static ETC_DEVICE float phi(float x) {
    const float size = x < 0.0f ? -x : x;
    if (size > kFar) return x < 0.0f ? 0.0f : 1.0f;
    const float t = 1.0f / (1.0f + 0.5f * 0.7071067811865476f * size);
    float p = simt::fma(t, 0.17087277f, -0.82215223f);
    p = simt::fma(t, p, 1.48851587f);
    p = simt::fma(t, p, -1.13520398f);
    p = simt::fma(t, p, 0.27886807f);
    p = simt::fma(t, p, -0.18628806f);
    p = simt::fma(t, p, 0.09678418f);
    p = simt::fma(t, p, 0.37409196f);
    p = simt::fma(t, p, 1.00002368f);
    p = simt::fma(t, p, -1.26551223f);
    const float tail = 0.5f * t * exp(simt::fma(-0.5f * x, x, p));
    return x < 0.0f ? tail : 1.0f - tail;
  }

  // act'(x). With t = tanh(u): gelu' = (1 + t)/2 + x/2 (1 − t²) u', u' = sqrt(2/pi) (1 + 3·0.044715 x²). relu'(0) = 0;
  // nan stays nan, except for relu.
  static ETC_DEVICE float slope(Activation activation, float x) {
    constexpr float kRoot = 0.7978845608f, kCube = 0.044715f;
    if (activation == Activation::relu) return x > 0.0f ? 1.0f : 0.0f;  // 0 for nan, as on the CPU
    if (activation == Activation::linear) return 1.0f;
    if (activation == Activation::tanh) {
      const float t = simt::tanh(x);
      return 1.0f - t * t;
    }
    if (activation == Activation::gelu_erf) {  // Phi(x) + x exp(-x²/2)/sqrt(2 pi)
      const float density = x < -kFar || x > kFar ? 0.0f : 0.3989422804014327f * exp(-0.5f * x * x);
      return simt::fma(x, density, phi(x));
    }
    const float t = simt::tanh(kRoot * (x + kCube * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * kRoot * (1.0f + 3.0f * kCube * x * x);
  }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.out.size) return;
    const float x = simt::load(p.x, i);
    simt::store(p.out, i, p.dy.size == 0 ? forward(p.activation, x) : simt::load(p.dy, i) * slope(p.activation, x));
  }
};

// y = x + alpha·branch, rounded twice like axpy.
struct ScaledSumKernel : simt::BlockOf<kElementThreads> {
  using Params = ScaledSumParams;
  static const char* name() { return "scaled sum"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t i = simt::block_x() * kThreads + simt::thread_index();
    if (i >= p.y.size) return;
    const float scaled = simt::multiply(simt::load(p.alpha, i % p.alpha.size), simt::load(p.branch, i));
    simt::store(p.y, i, simt::add(simt::load(p.x, i), scaled));
  }
};

// For a block's kSumElements elements: dbranch = alpha·dy, and partial = the sum of dy·branch, in double. A thread
// reads an element of dy and branch before it writes the same element of dbranch, which may be either array.
struct ScaledSumBackwardKernel : simt::BlockOf<kElementThreads> {
  using Params = ScaledSumBackwardParams;
  static constexpr std::int64_t kShared = kThreads * static_cast<std::int64_t>(sizeof(double));
  static const char* name() { return "scaled sum backward"; }

  static ETC_DEVICE void run(const Params& p) {
    simt::SharedArena arena;
    const auto shared = arena.take<double>(kThreads);  // [threads] one partial sum each
    const std::int64_t first = simt::block_x() * kSumElements;
    const std::int64_t end = first + kSumElements < p.dy.size ? first + kSumElements : p.dy.size;
    double sum = 0;
    for (std::int64_t i = first + simt::thread_index(); i < end; i += kThreads) {
      const float dy = simt::load(p.dy, i);
      sum += static_cast<double>(dy) * simt::load(p.branch, i);
      if (p.dbranch.size > 0) simt::store(p.dbranch, i, simt::multiply(simt::load(p.alpha, i % p.alpha.size), dy));
    }
    if (p.partial.size == 0) return;
    sum = block_sum<kThreads>(sum, shared);
    if (simt::thread_index() == 0) simt::store(p.partial, simt::block_x(), sum);
  }
};

// dalpha += partial, in the order of the blocks. There are few blocks, so one thread adds them.
struct ScaledSumAlphaKernel : simt::BlockOf<32> {
  using Params = ScaledSumBackwardParams;
  static const char* name() { return "scaled sum alpha"; }

  static ETC_DEVICE void run(const Params& p) {
    if (simt::thread_index() != 0) return;
    double sum = simt::load(p.dalpha, 0);
    for (std::int64_t block = 0; block < p.partial.size; ++block) sum += simt::load(p.partial, block);
    simt::store(p.dalpha, 0, static_cast<float>(sum));
  }
};

// dalpha_j += Σ dy·branch over the rows of column j. One block per column, since there are few columns and many rows.
struct ScaledSumColumnKernel : simt::BlockOf<kElementThreads> {
  using Params = ScaledSumBackwardParams;
  static constexpr std::int64_t kShared = kThreads * static_cast<std::int64_t>(sizeof(double));
  static const char* name() { return "scaled sum column"; }

  static ETC_DEVICE void run(const Params& p) {
    simt::SharedArena arena;
    const auto shared = arena.take<double>(kThreads);  // [threads] one partial sum each
    const std::int64_t cols = p.alpha.size, column = simt::block_x();
    double sum = 0;
    for (std::int64_t i = column + cols * simt::thread_index(); i < p.dy.size; i += cols * kThreads) {
      sum += static_cast<double>(simt::load(p.dy, i)) * simt::load(p.branch, i);
    }
    sum = block_sum<kThreads>(sum, shared);
    if (simt::thread_index() != 0) return;
    simt::store(p.dalpha, column, static_cast<float>(static_cast<double>(simt::load(p.dalpha, column)) + sum));
  }
};

// y = base + dropout(a): a block takes one row, because a row has its own stream of random numbers; a thread takes
// every 128th column. y may be a or base, because a thread reads an element before it writes the same one.
struct DropoutAddKernel : simt::BlockOf<128> {
  using Params = DropoutAddParams;
  static const char* name() { return "dropout and sum"; }

  static ETC_DEVICE void run(const Params& p) {
    const std::int64_t row = simt::block_x();
    const RowStream stream = row_stream(p.dropout, row);
    for (std::int64_t column = simt::thread_index(); column < p.cols; column += kThreads) {
      const std::int64_t i = row * p.cols + column;
      const float value = dropped(p.dropout, stream, column, simt::load(p.a, i));
      simt::store(p.y, i, p.base.size == 0 ? value : simt::load(p.base, i) + value);
    }
  }
};

}  // namespace etc::ops::cuda
