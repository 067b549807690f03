// The activations and their derivatives on one vector (Highway; per target).
#if defined(ETC_CORE_OPS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_CORE_OPS_CPU_ACTIVATION_INL_H_
#undef ETC_CORE_OPS_CPU_ACTIVATION_INL_H_
#else
#define ETC_CORE_OPS_CPU_ACTIVATION_INL_H_
#endif

#include "etc_core/base/power_of_two-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Order of Min and Max operands: if one is nan, x86 returns the second. So the value that may be nan is passed second.

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
  // tanh' = 1 − tanh²: recomputed from x, so that a forward pass needs to keep only one array.
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
// power and one division and loses no digits where tanh is near −1. The power is a power of 2: the factor log2 e is
// included in the coefficients.
struct Gelu {
  static constexpr float kA = 1.5957691216057308f;  // 2·sqrt(2/pi)
  static constexpr float kB = 1.5957691216057308f * 0.044715f;
  static constexpr float kLog2E = 1.4426950408889634f;
  static constexpr float kLargestExponent = 127.0f;  // keeps the power finite; x / 2^127 is practically 0

  template <class D, class V>
  static HWY_INLINE V exp_minus_2u(D d, V x) {
    const V factor = hn::MulAdd(hn::Set(d, -kB * kLog2E), hn::Mul(x, x), hn::Set(d, -kA * kLog2E));
    return etc::HWY_NAMESPACE::power_of_two(d, hn::Min(hn::Set(d, kLargestExponent), hn::Mul(x, factor)));
  }
  template <class D, class V>
  static HWY_INLINE V value(D d, V x) {
    return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp_minus_2u(d, x)));
  }
  // gelu'(x) = s + x·s·(1−s)·(2u)' with s = sigmoid(2u), 1−s = exp(−2u)·s, (2u)' = a + 3b·x²
  template <class D, class V>
  static HWY_INLINE V gradient(D d, V unbounded, V dy) {
    // Beyond ±20 the derivative is 0 or 1 to the last bit; the bound avoids inf·0.
    const V x = hn::Max(hn::Set(d, -20.0f), hn::Min(hn::Set(d, 20.0f), unbounded));
    const V e = exp_minus_2u(d, x);
    const V s = hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), e));
    const V slope = hn::MulAdd(hn::Set(d, 3 * kB), hn::Mul(x, x), hn::Set(d, kA));
    const V inner = hn::MulAdd(hn::Mul(x, slope), hn::Mul(e, s), hn::Set(d, 1.0f));
    return hn::Mul(dy, hn::Mul(s, inner));
  }
};

// gelu_erf(x) = x·Phi(x), where Phi is the cumulative normal distribution. With z = |x|/sqrt(2): Phi(-|x|) = erfc(z)/2,
// and erfc(z) = t·exp(-z² + P(t)), t = 1/(1 + z/2), with a relative error below 1.2e-7 (Press et al., Numerical
// Recipes, section 6.2).
struct GeluErf {
  static constexpr float kRootHalf = 0.7071067811865476f;
  static constexpr float kDensity = 0.3989422804014327f;  // 1/sqrt(2·pi)
  static constexpr float kFar = 20.0f;                    // beyond it Phi is 0 or 1 to the last bit
  static constexpr float kP[] = {-1.26551223f, 1.00002368f,  0.37409196f, 0.09678418f,  -0.18628806f,
                                 0.27886807f,  -1.13520398f, 1.48851587f, -0.82215223f, 0.17087277f};

  template <class D, class V>
  static HWY_INLINE V bounded(D d, V x) {
    return hn::Max(hn::Set(d, -kFar), hn::Min(hn::Set(d, kFar), x));
  }
  // Phi(x), |x| <= kFar. z² is x·x/2: rounding z first would cost digits of the exponential.
  template <class D, class V>
  static HWY_INLINE V phi(D d, V x) {
    const V one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f);
    const V z = hn::Mul(hn::Abs(x), hn::Set(d, kRootHalf));
    const V t = hn::Div(one, hn::MulAdd(half, z, one));
    V exponent = hn::Set(d, kP[9]);
    for (int i = 8; i >= 0; --i) exponent = hn::MulAdd(exponent, t, hn::Set(d, kP[i]));
    exponent = hn::NegMulAdd(hn::Mul(half, x), x, exponent);
    const V tail = hn::Mul(hn::Mul(half, t), hn::Exp(d, exponent));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  }
  template <class D, class V>
  static HWY_INLINE V value(D d, V x) {
    return hn::Mul(hn::Max(hn::Set(d, -kFar), x), phi(d, bounded(d, x)));
  }
  // gelu_erf'(x) = Phi(x) + x·exp(-x²/2)/sqrt(2·pi)
  template <class D, class V>
  static HWY_INLINE V gradient(D d, V unbounded, V dy) {
    const V x = bounded(d, unbounded);
    const V density = hn::Exp(d, hn::Mul(hn::Mul(hn::Set(d, -0.5f), x), x));
    return hn::Mul(dy, hn::MulAdd(hn::Mul(x, hn::Set(d, kDensity)), density, phi(d, x)));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
