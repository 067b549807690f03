// Activations over whole arrays, and the last step of a dense layer's tile: bias and activation while it is in cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/activation_cpu.cpp"
#include "hwy/foreach_target.h"
// Behind foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/cpu/activation-inl.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {

// The last, partial vector of a row goes through the same arithmetic as the whole ones, with the lanes beyond the end
// masked: an element's bits do not depend on where it stands.

// y [size] = act(x).
template <class Act>
void forward_range(const float* x, float* y, std::int64_t size) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) hn::StoreU(Act::value(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == size) return;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(size - i));
  hn::BlendedStore(Act::value(d, hn::MaskedLoad(rest, d, x + i)), rest, d, y + i);
}

// dx [size] = dy·act'(x); dx may be dy: a vector is read before it is written.
template <class Act>
void backward_range(const float* x, const float* dy, float* dx, std::int64_t size) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(Act::gradient(d, hn::LoadU(d, x + i), hn::LoadU(d, dy + i)), d, dx + i);
  }
  if (i == size) return;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(size - i));
  hn::BlendedStore(Act::gradient(d, hn::MaskedLoad(rest, d, x + i), hn::MaskedLoad(rest, d, dy + i)), rest, d, dx + i);
}

// All lanes of a vector, or the first ones: whole vectors go without a mask, which stores pay for.
struct AllLanes {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, hn::TFromD<D>* to) const {
    hn::StoreU(value, d, to);
  }
};
struct FirstLanes {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* from) const {
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
  }
  template <class D>
  HWY_INLINE void store(D d, hn::Vec<D> value, hn::TFromD<D>* to) const {
    hn::BlendedStore(value, hn::FirstN(d, count), d, to);
  }
  std::size_t count;
};

// The products of some columns of a row as fp32, whatever they are.
struct FloatProducts {
  template <class D, class L>
  static HWY_INLINE hn::Vec<D> value(D d, L lanes, const TileEpilogue& t, std::int64_t row, std::int64_t col) {
    return lanes.load(d, t.product + row * t.product_stride + col);
  }
};

// Sums of bytes; the difference is exact in 32 bits.
struct ByteProducts {
  template <class D, class L>
  static HWY_INLINE hn::Vec<D> value(D d, L lanes, const TileEpilogue& t, std::int64_t row, std::int64_t col) {
    const hn::RebindToSigned<D> di;
    const auto* sums = reinterpret_cast<const std::int32_t*>(t.product) + row * t.product_stride;  // [cols]
    const auto shift = hn::ShiftLeft<7>(lanes.load(di, t.bytes.column_sums + col));
    const auto scale = hn::Mul(hn::Set(d, t.bytes.rows[row]), lanes.load(d, t.bytes.columns + col));
    return hn::Mul(hn::ConvertTo(d, hn::Sub(lanes.load(di, sums + col), shift)), scale);
  }
};

// Bias, activation and, if wanted, the sum with what y holds, for a tile that the product has just left in cache. Each
// step is one instruction per vector; passes of their own over y would read and write it from memory again.
template <class Act, class Products>
void finish_rows(const TileEpilogue& t) {
  const hn::ScalableTag<float> d;
  const auto finish = [&](auto lanes, std::int64_t row, std::int64_t col) HWY_ATTR {
    float* y = t.y + row * t.y_stride + col;  // perhaps product itself: read before it is written
    auto value = Products::value(d, lanes, t, row, col);
    if (t.bias != nullptr) value = hn::Add(value, lanes.load(d, t.bias + col));
    if (t.z != nullptr) lanes.store(d, value, t.z + row * t.z_stride + col);
    value = Act::value(d, value);
    if (t.add) value = hn::Add(lanes.load(d, y), value);
    lanes.store(d, value, y);
  };
  const auto vector = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = 0; row < t.rows; ++row) {
    std::int64_t col = 0;
    for (; col + vector <= t.cols; col += vector) finish(AllLanes(), row, col);
    if (col < t.cols) finish(FirstLanes{static_cast<std::size_t>(t.cols - col)}, row, col);
  }
}

template <class Act>
void finish_rows(const TileEpilogue& t) {
  t.bytes.rows == nullptr ? finish_rows<Act, FloatProducts>(t) : finish_rows<Act, ByteProducts>(t);
}

// The switch is outside the loops: each activation is a loop of its own without a branch in it.
void activation_forward_range(Activation activation, const float* x, float* y, std::int64_t size) {
  switch (activation) {
    case Activation::linear:
      return forward_range<Linear>(x, y, size);
    case Activation::relu:
      return forward_range<Relu>(x, y, size);
    case Activation::tanh:
      return forward_range<Tanh>(x, y, size);
    case Activation::gelu:
      return forward_range<Gelu>(x, y, size);
    case Activation::gelu_erf:
      return forward_range<GeluErf>(x, y, size);
  }
}

void activation_backward_range(Activation activation, const float* x, const float* dy, float* dx, std::int64_t size) {
  switch (activation) {
    case Activation::linear:
      return backward_range<Linear>(x, dy, dx, size);
    case Activation::relu:
      return backward_range<Relu>(x, dy, dx, size);
    case Activation::tanh:
      return backward_range<Tanh>(x, dy, dx, size);
    case Activation::gelu:
      return backward_range<Gelu>(x, dy, dx, size);
    case Activation::gelu_erf:
      return backward_range<GeluErf>(x, dy, dx, size);
  }
}

void finish_tile_rows(const TileEpilogue& tile) {
  switch (tile.activation) {
    case Activation::linear:
      return finish_rows<Linear>(tile);
    case Activation::relu:
      return finish_rows<Relu>(tile);
    case Activation::tanh:
      return finish_rows<Tanh>(tile);
    case Activation::gelu:
      return finish_rows<Gelu>(tile);
    case Activation::gelu_erf:
      return finish_rows<GeluErf>(tile);
  }
}

// sums [cols] += column sums of a [rows, cols]. Columns in groups of four vectors, summed over the rows in registers,
// then added: four sums that do not wait for each other, and whole cache lines of a row at a time.
void add_column_sums_of(std::int64_t rows, std::int64_t cols, const float* a, std::int64_t stride, float* sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t col = 0; col < cols; col += 4 * lanes) {
    const auto columns = [&](std::int64_t i) {
      return hn::FirstN(d, static_cast<std::size_t>(std::clamp<std::int64_t>(cols - col - i * lanes, 0, lanes)));
    };
    const auto some0 = columns(0), some1 = columns(1), some2 = columns(2), some3 = columns(3);
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = a + row * stride + col;  // [4·lanes]; lanes beyond cols are masked and not read
      sum0 = hn::Add(sum0, hn::MaskedLoad(some0, d, from));
      sum1 = hn::Add(sum1, hn::MaskedLoad(some1, d, from + lanes));
      sum2 = hn::Add(sum2, hn::MaskedLoad(some2, d, from + 2 * lanes));
      sum3 = hn::Add(sum3, hn::MaskedLoad(some3, d, from + 3 * lanes));
    }
    float* to = sums + col;  // [4·lanes]
    hn::BlendedStore(hn::Add(hn::MaskedLoad(some0, d, to), sum0), some0, d, to);
    hn::BlendedStore(hn::Add(hn::MaskedLoad(some1, d, to + lanes), sum1), some1, d, to + lanes);
    hn::BlendedStore(hn::Add(hn::MaskedLoad(some2, d, to + 2 * lanes), sum2), some2, d, to + 2 * lanes);
    hn::BlendedStore(hn::Add(hn::MaskedLoad(some3, d, to + 3 * lanes), sum3), some3, d, to + 3 * lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

HWY_EXPORT(activation_forward_range);
HWY_EXPORT(activation_backward_range);
HWY_EXPORT(finish_tile_rows);
HWY_EXPORT(add_column_sums_of);

namespace {
constexpr std::int64_t kTaskElements = 1 << 14;  // 64 KiB of each array
void activation_forward(Activation activation, const float* x, float* y, std::int64_t size) {
  parallel_for(ceil_div(size, kTaskElements), [&](std::int64_t task) {
    const std::int64_t first = task * kTaskElements;
    HWY_DYNAMIC_DISPATCH(activation_forward_range)
    (activation, x + first, y + first, std::min(kTaskElements, size - first));
  });
}

void activation_backward(Activation activation, const float* x, const float* dy, float* dx, std::int64_t size) {
  parallel_for(ceil_div(size, kTaskElements), [&](std::int64_t task) {
    const std::int64_t first = task * kTaskElements;
    HWY_DYNAMIC_DISPATCH(activation_backward_range)
    (activation, x + first, dy + first, dx + first, std::min(kTaskElements, size - first));
  });
}

}  // namespace

void finish_tile(const TileEpilogue& tile) {
  HWY_DYNAMIC_DISPATCH(finish_tile_rows)(tile);
}

void add_column_sums(std::int64_t rows, std::int64_t cols, const float* a, std::int64_t stride, float* sums) {
  HWY_DYNAMIC_DISPATCH(add_column_sums_of)(rows, cols, a, stride, sums);
}

void register_activation() {
  fill_slot(activation_forward_kernel, activation_forward);
  fill_slot(activation_backward_kernel, activation_backward);
  // Of devices that keep bf16, counted here.
  activation_forward_bf16_kernel.fill(Device::counting, [](Activation, const Bf16*, Bf16*, std::int64_t) {});
  activation_backward_bf16_kernel.fill(Device::counting,
                                       [](Activation, const Bf16*, const Bf16*, Bf16*, std::int64_t) {});
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
