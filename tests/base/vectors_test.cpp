// The vector functions of base give the same numbers as their scalar definitions, with every instruction set of this
// processor.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/base/vectors_test.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h, which includes this file once per instruction set.
#include <cmath>
#include <cstdint>
#include <limits>

#include "etc_core/base/bf16-inl.h"
#include "etc_core/base/bf16.h"
#include "etc_core/base/nearest_int-inl.h"
#include "etc_core/base/philox-inl.h"
#include "etc_core/base/power_of_two-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The number of differences over all upper halves, combined with the lower halves that are critical for rounding.
std::int64_t bf16_differences() {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  std::int64_t differences = 0;
  for (std::uint32_t upper = 0; upper < 1u << 16; ++upper) {
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const auto x = hn::BitCast(d, hn::Set(du, upper << 16 | lower));
      differences += hn::GetLane(bf16_bits(d, x)) != bf16_from_float(hn::GetLane(x));
    }
  }
  return differences;
}

// The number of differing random words over all lanes.
std::int64_t philox_differences() {
  std::int64_t differences = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint64_t> d;
  const auto lanes = static_cast<std::uint32_t>(hn::Lanes(d));
  constexpr std::uint64_t kKey = 0x123456789abcdef0ull;
  alignas(64) std::uint64_t words[hn::MaxLanes(d)];
  for (std::uint32_t first = 0; first < 100; ++first) {
    hn::Vec<decltype(d)> c[4] = {hn::Iota(d, first), hn::Set(d, ~first), hn::Set(d, 7), hn::Zero(d)};
    philox_lanes(d, c, kKey);
    for (std::size_t word = 0; word < 4; ++word) {
      hn::Store(c[word], d, words);
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const Philox4 expected = philox({first + lane, ~first, 7, 0}, kKey);
        differences += static_cast<std::uint32_t>(words[lane]) != expected[word];
      }
    }
  }
#endif
  return differences;
}

// The number of inputs within 32 bits that are not rounded like the scalar function, ties to even.
std::int64_t rounding_differences() {
  const hn::ScalableTag<float> d;
  std::int64_t differences = 0;
  const auto check = [&](float x) {
    const auto got = hn::GetLane(nearest_int(hn::Set(d, x)));
    differences += got != static_cast<std::int32_t>(std::nearbyint(static_cast<double>(x)));
  };
  for (std::int32_t i = -2000; i < 2000; ++i) {
    for (const float step : {0.25f, 0.3f, 1000.7f, 1e6f}) check(static_cast<float>(i) * step);
  }
  return differences;
}

// 2^x in steps of 2^-8 from -140 to 127: the number of results off by more than one ulp, or not 0 below -125; and a sum
// of all bits, which must be the same for all instruction sets.
struct Powers {
  std::int64_t wrong = 0;
  std::uint64_t bits = 0;
};
Powers powers_of_two() {
  const hn::ScalableTag<float> d;
  Powers powers;
  for (std::int32_t i = -140 * 256; i <= 127 * 256; ++i) {
    const float x = static_cast<float>(i) / 256, got = hn::GetLane(power_of_two(d, hn::Set(d, x)));
    const double exact = std::exp2(static_cast<double>(x)), unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    powers.wrong += x < -125 ? got != 0 : std::fabs(static_cast<double>(got) - exact) > unit;
    powers.bits = powers.bits * 31 + hn::GetLane(hn::BitCast(hn::RebindToUnsigned<decltype(d)>(), hn::Set(d, got)));
  }
  powers.wrong += hn::GetLane(power_of_two(d, hn::Set(d, -std::numeric_limits<float>::infinity()))) != 0;
  return powers;
}
std::uint64_t bits_of_powers() {
  return powers_of_two().bits;
}
std::int64_t wrong_powers() {
  return powers_of_two().wrong;
}

}  // namespace etc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

#include "etc_core/base/vector_dispatch.h"
#include "tests/support/catch.h"

namespace etc {

namespace {
// The versions of a function that this processor runs: the baseline's, then that for AVX-512.
template <class Function>
std::vector<Function*> versions_here(Function* baseline, Function* avx512) {
  if (cpu_has_avx512_vectors()) return {baseline, avx512};
  return {baseline};
}
template <class Function>
std::vector<Function*> versions_here(Function* baseline, std::nullptr_t) {
  return {baseline};
}
}  // namespace

#define ETC_VERSIONS_HERE(function) versions_here(&HWY_STATIC_DISPATCH(function), HWY_CHOOSE_AVX3(function))

TEST_CASE("vectors round, raise to powers and draw random numbers as the plain definitions do", "[base]") {
  for (const auto& differences : ETC_VERSIONS_HERE(bf16_differences)) CHECK(differences() == 0);
  for (const auto& differences : ETC_VERSIONS_HERE(philox_differences)) CHECK(differences() == 0);
  for (const auto& differences : ETC_VERSIONS_HERE(rounding_differences)) CHECK(differences() == 0);
  for (const auto& wrong : ETC_VERSIONS_HERE(wrong_powers)) CHECK(wrong() == 0);
  const std::uint64_t powers = ETC_DISPATCH(bits_of_powers)();
  for (const auto& bits : ETC_VERSIONS_HERE(bits_of_powers)) CHECK(bits() == powers);
}

using Catch::Matchers::Contains;

TEST_CASE("a call runs the version of the best instruction set that processor and limit allow", "[base]") {
  const auto baseline = [] { return 1; };
  const auto avx512 = [] { return 2; };
  CHECK(version_for_cpu(+baseline, +avx512)() == (cpu_has_avx512_vectors() ? 2 : 1));
  CHECK(version_for_cpu(+baseline, nullptr)() == 1);
  // Names the parts of AVX-512 that the processor has, within the limit.
  const std::string instructions = instruction_set();
  CHECK(cpu_has_avx512_vectors() ==
        (Contains("avx512f").match(instructions) && Contains("avx512bw").match(instructions) &&
         Contains("avx512dq").match(instructions) && Contains("avx512vl").match(instructions)));
  if (cpu_level() == CpuLevel::avx2) CHECK_FALSE(cpu_has_avx512_vectors());
}

}  // namespace etc
#endif
