// The activations and their derivatives on one vector (Highway; per target).
#if defined(ETC_CORE_OPS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_CORE_OPS_CPU_ACTIVATION_INL_H_
#undef ETC_CORE_OPS_CPU_ACTIVATION_INL_H_
#else
#define ETC_CORE_OPS_CPU_ACTIVATION_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Order of Min and Max operands: where one is nan, x86 returns the second. The value that may be nan goes there.

// value(d, x) = act(x); gradient(d, x, dy) = dy·act'(x), x being the input of the forward.
struct Linear {
  template <class D, class V>
  static HWY_INLINE V value(D, V x) {
    return x;
  }
  template <class D, class V>
  static HWY_INLINE V gradient(D, V, V dy) {
    return dy;
  }
};

struct Relu {
  // max(0, x); the derivative at 0 is 0.
  template <class D, class V>
  static HWY_INLINE V value(D d, V x) {
    return hn::Max(hn::Zero(d), x);
  }
  template <class D, class V>
  static HWY_INLINE V gradient(D d, V x, V dy) {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), dy);
  }
};

struct Tanh {
  // tanh' = 1 − tanh²: computed again from x, so that a forward pass needs to keep one array only.
  template <class D, class V>
  static HWY_INLINE V value(D d, V x) {
    return hn::Tanh(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V gradient(D d, V x, V dy) {
    const V t = hn::Tanh(d, x);
    return hn::Mul(dy, hn::NegMulAdd(t, t, hn::Set(d, 1.0f)));
  }
};

// gelu(x) = x/2·(1 + tanh(u)) = x·sigmoid(2u) = x / (1 + exp(−2u)) with 2u = x·(a + b·x²). The last form costs one
// exponential and one division and loses no digits where tanh is near −1.
struct Gelu {
  static constexpr float kA = 1.5957691216057308f;  // 2·sqrt(2/pi)
  static constexpr float kB = 1.5957691216057308f * 0.044715f;
  static constexpr float kLargestExponent = 88.0f;  // exp stays finite; x / exp(88) is as good as 0

  template <class D, class V>
  static HWY_INLINE V exp_minus_2u(D d, V x) {
    const V minus_2u = hn::Mul(hn::Neg(x), hn::MulAdd(hn::Set(d, kB), hn::Mul(x, x), hn::Set(d, kA)));
    return hn::Exp(d, hn::Min(hn::Set(d, kLargestExponent), minus_2u));
  }
  template <class D, class V>
  static HWY_INLINE V value(D d, V x) {
    return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp_minus_2u(d, x)));
  }
  // gelu'(x) = s + x·s·(1−s)·(2u)' with s = sigmoid(2u), 1−s = exp(−2u)·s, (2u)' = a + 3b·x²
  template <class D, class V>
  static HWY_INLINE V gradient(D d, V unbounded, V dy) {
    // Beyond ±20 the derivative is 0 or 1 to the last bit; the bound keeps inf·0 away.
    const V x = hn::Max(hn::Set(d, -20.0f), hn::Min(hn::Set(d, 20.0f), unbounded));
    const V e = exp_minus_2u(d, x);
    const V s = hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), e));
    const V slope = hn::MulAdd(hn::Set(d, 3 * kB), hn::Mul(x, x), hn::Set(d, kA));
    const V inner = hn::MulAdd(hn::Mul(x, slope), hn::Mul(e, s), hn::Set(d, 1.0f));
    return hn::Mul(dy, hn::Mul(s, inner));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
