// Vectorised random bits of etc_core/base/random.h along a row (Highway; per target).
//
// The bits equal those of dropout_block(), word for word: the vector length only determines how many blocks are
// computed at once.
#if defined(ETC_CORE_OPS_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_CORE_OPS_CPU_PHILOX_INL_H_
#undef ETC_CORE_OPS_CPU_PHILOX_INL_H_
#else
#define ETC_CORE_OPS_CPU_PHILOX_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "etc_core/base/integers.h"
#include "etc_core/base/philox-inl.h"
#include "etc_core/base/random.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Upper bound of the words that dropout_bits writes for `count` elements.
HWY_INLINE std::int64_t dropout_bits_room(std::int64_t count) {
  constexpr std::int64_t kLargestStep = 64;  // four words for each of at most sixteen 64-bit lanes
  return round_up(count, kLargestStep);
}

#if HWY_TARGET == HWY_SCALAR

// For the x86-64 baseline: compiled but never run (etc_core/base/cpu_features.h requires AVX2).
HWY_INLINE void dropout_bits(std::uint64_t key, std::uint32_t a, std::uint32_t b, std::int64_t count,
                             std::uint32_t* words) {
  for (std::int64_t i = 0; i < count; i += 4) {
    const Philox4 block = dropout_block(key, a, b, static_cast<std::uint32_t>(i / 4));
    std::memcpy(words + i, block.data(), sizeof(block));
  }
}

#else

// words[c] = bits of element (a, b, c) of the stream `key` for 0 <= c < count, rounded up to whole vectors.
HWY_INLINE void dropout_bits(std::uint64_t key, std::uint32_t a, std::uint32_t b, std::int64_t count,
                             std::uint32_t* words) {
  // One 64-bit lane per block: a 32x32 multiplication then needs no shuffles. Only the low half of a counter lane is
  // significant: the multiplication reads nothing else, and the high halves are masked off at the end.
  const hn::ScalableTag<std::uint64_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto low_half = hn::Set(d, 0xFFFFFFFFu);
  const auto step = hn::Set(d, static_cast<std::uint64_t>(lanes));
  auto block = hn::Iota(d, 0);
  for (std::int64_t i = 0; i < count; i += 4 * lanes) {
    // Counter (block, b, a, 0) and key, as in dropout_block().
    hn::Vec<decltype(d)> c[4] = {block, hn::Set(d, b), hn::Set(d, a), hn::Zero(d)};
    etc::HWY_NAMESPACE::philox_lanes(d, c, key);
    // Lane j holds the four words of block i/4 + j in c; they are stored block by block.
    const auto words01 = hn::Or(hn::And(c[0], low_half), hn::ShiftLeft<32>(c[1]));
    const auto words23 = hn::Or(hn::And(c[2], low_half), hn::ShiftLeft<32>(c[3]));
    alignas(64) std::uint64_t pairs[2 * hn::MaxLanes(d)];  // [lanes, 2] = [lanes, 4] words
    hn::StoreInterleaved2(words01, words23, d, pairs);
    std::memcpy(words + i, pairs, static_cast<std::size_t>(4 * lanes) * sizeof(std::uint32_t));
    block = hn::Add(block, step);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
