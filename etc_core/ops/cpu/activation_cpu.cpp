// Activations over whole arrays, and the last step of a dense layer's tile: bias and activation while it is in cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/activation_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>

#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/cpu/activation-inl.h"
#include "etc_core/ops/cpu/bias.h"
#include "etc_core/ops/cpu/kernels.h"
#include "etc_core/ops/cpu/number_lanes-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {

// y [size] = act(x).
template <class Act, typename Number>
void forward_range(const Number* x, Number* y, std::int64_t size) {
  const hn::ScalableTag<float> d;
  for_vectors(size,
              [=](auto lanes, std::int64_t i) HWY_ATTR { lanes.store(d, Act::value(d, lanes.load(d, x + i)), y + i); });
}

// dx [size] = dy·act'(x); dx may be dy: a vector is read before it is written.
template <class Act, typename Number>
void backward_range(const Number* x, const Number* dy, Number* dx, std::int64_t size) {
  const hn::ScalableTag<float> d;
  for_vectors(size, [=](auto lanes, std::int64_t i) HWY_ATTR {
    lanes.store(d, Act::gradient(d, lanes.load(d, x + i), lanes.load(d, dy + i)), dx + i);
  });
}

// The products of some columns of a row, read as fp32.
struct FloatProducts {
  template <class D, class L>
  static HWY_INLINE hn::Vec<D> value(D d, L lanes, const TileEpilogue& t, std::int64_t row, std::int64_t col) {
    return lanes.load(d, t.product + row * t.product_stride + col);
  }
};

// Sums of byte products, converted to fp32; the subtraction is exact in 32 bits.
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

// Whether each of these rows, `stride` numbers apart, consists of whole cache lines.
template <typename Number>
bool whole_lines(const Number* rows, std::int64_t stride, std::int64_t cols) {
  constexpr std::int64_t kLine = 64 / sizeof(Number);
  return reinterpret_cast<std::uintptr_t>(rows) % 64 == 0 && stride % kLine == 0 && cols % kLine == 0;
}

// Bias, activation and, with `add`, the sum with the old y, for a tile that the product has just left in cache.
// Separate passes over y would read it from memory and write it back again. z is not read before backward: where its rows
// are whole cache lines, they are written without being read (non-temporal stores), 1.17 times the rate of the product.
template <class Act, class Products, typename Number>
void finish_rows(const TileEpilogue& t, Number* all_z, Number* all_y) {
  const hn::ScalableTag<float> d;
  const bool stream_z = all_z != nullptr && all_z != all_y && whole_lines(all_z, t.z_stride, t.cols);
  for (std::int64_t row = 0; row < t.rows; ++row) {
    for_vectors(t.cols, [&](auto lanes, std::int64_t col) HWY_ATTR {
      Number* y = all_y + row * t.y_stride + col;  // may be product itself: read before it is written
      auto value = Products::value(d, lanes, t, row, col);
      if (t.bias != nullptr) value = hn::Add(value, lanes.load(d, t.bias + col));
      if (stream_z) {
        lanes.stream(d, value, all_z + row * t.z_stride + col);
      } else if (all_z != nullptr) {
        lanes.store(d, value, all_z + row * t.z_stride + col);
      }
      value = Act::value(d, value);
      if (t.add) value = hn::Add(lanes.load(d, y), value);
      lanes.store(d, value, y);
    });
  }
  if (stream_z) hwy::FlushStream();  // before other threads are told that the tile is done
}

template <class Act, class Products>
void finish_rows(const TileEpilogue& t) {
  t.y.bf16 != nullptr ? finish_rows<Act, Products>(t, t.z.bf16, t.y.bf16)
                      : finish_rows<Act, Products>(t, t.z.fp32, t.y.fp32);
}

// Calls body(Act()) with the activation's class. The switch is outside the loops, so each activation has its own loop
// without branches.
template <class Body>
void for_activation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::linear:
      return body(Linear());
    case Activation::relu:
      return body(Relu());
    case Activation::tanh:
      return body(Tanh());
    case Activation::gelu:
      return body(Gelu());
    case Activation::gelu_erf:
      return body(GeluErf());
  }
}

void activation_forward_range(Activation activation, const Numbers& x, const MutableNumbers& y, std::int64_t size) {
  for_activation(activation, [&](auto act) {
    using Act = decltype(act);
    y.bf16 != nullptr ? forward_range<Act>(x.bf16, y.bf16, size) : forward_range<Act>(x.fp32, y.fp32, size);
  });
}

void activation_backward_range(Activation activation, const Numbers& x, const Numbers& dy, const MutableNumbers& dx,
                               std::int64_t size) {
  for_activation(activation, [&](auto act) {
    using Act = decltype(act);
    dx.bf16 != nullptr ? backward_range<Act>(x.bf16, dy.bf16, dx.bf16, size)
                       : backward_range<Act>(x.fp32, dy.fp32, dx.fp32, size);
  });
}

void finish_tile_rows(const TileEpilogue& tile) {
  for_activation(tile.activation, [&](auto act) {
    using Act = decltype(act);
    tile.bytes.rows == nullptr ? finish_rows<Act, FloatProducts>(tile) : finish_rows<Act, ByteProducts>(tile);
  });
}

// sums [cols] += column sums of a [rows, cols]. Columns are summed over the rows in registers, in groups of four
// vectors: four independent sums, and whole cache lines of a row at a time.
template <typename Number>
void add_column_sums_of(std::int64_t rows, std::int64_t cols, const Number* a, std::int64_t stride, float* sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t col = 0; col < cols; col += 4 * lanes) {
    const auto columns = [&](std::int64_t i) {
      return FirstLanes{static_cast<std::size_t>(std::clamp<std::int64_t>(cols - col - i * lanes, 0, lanes))};
    };
    const auto some0 = columns(0), some1 = columns(1), some2 = columns(2), some3 = columns(3);
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
    for (std::int64_t row = 0; row < rows; ++row) {
      const Number* from = a + row * stride + col;  // [4·lanes]; lanes beyond cols are not read
      sum0 = hn::Add(sum0, some0.load(d, from));
      sum1 = hn::Add(sum1, some1.load(d, from + lanes));
      sum2 = hn::Add(sum2, some2.load(d, from + 2 * lanes));
      sum3 = hn::Add(sum3, some3.load(d, from + 3 * lanes));
    }
    float* to = sums + col;  // [4·lanes]
    some0.store(d, hn::Add(some0.load(d, to), sum0), to);
    some1.store(d, hn::Add(some1.load(d, to + lanes), sum1), to + lanes);
    some2.store(d, hn::Add(some2.load(d, to + 2 * lanes), sum2), to + 2 * lanes);
    some3.store(d, hn::Add(some3.load(d, to + 3 * lanes), sum3), to + 3 * lanes);
  }
}

void add_column_sums_range(std::int64_t rows, std::int64_t cols, const Numbers& a, std::int64_t stride, float* sums) {
  a.visit([&](const auto* numbers) { add_column_sums_of(rows, cols, numbers, stride, sums); });
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

namespace {
constexpr std::int64_t kTaskElements = 1 << 14;  // 64 KiB of each array in fp32

template <typename Number>
void activation_forward(Activation activation, const Number* x, Number* y, std::int64_t size) {
  parallel_for(ceil_div(size, kTaskElements), [&](std::int64_t task) {
    const std::int64_t first = task * kTaskElements;
    ETC_DISPATCH(activation_forward_range)
    (activation, x + first, y + first, std::min(kTaskElements, size - first));
  });
}

template <typename Number>
void activation_backward(Activation activation, const Number* x, const Number* dy, Number* dx, std::int64_t size) {
  parallel_for(ceil_div(size, kTaskElements), [&](std::int64_t task) {
    const std::int64_t first = task * kTaskElements;
    ETC_DISPATCH(activation_backward_range)
    (activation, x + first, dy + first, dx + first, std::min(kTaskElements, size - first));
  });
}

}  // namespace

void finish_tile(const TileEpilogue& tile) {
  ETC_DISPATCH(finish_tile_rows)(tile);
}

void add_column_sums(std::int64_t rows, std::int64_t cols, const Numbers& a, std::int64_t stride, float* sums) {
  ETC_DISPATCH(add_column_sums_range)(rows, cols, a, stride, sums);
}

void register_activation() {
  fill_slot(activation_forward_kernel, activation_forward<float>);
  fill_slot(activation_backward_kernel, activation_backward<float>);
  fill_slot(activation_forward_bf16_kernel, activation_forward<Bf16>);
  fill_slot(activation_backward_bf16_kernel, activation_backward<Bf16>);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE
