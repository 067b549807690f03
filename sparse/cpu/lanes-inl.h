// Arithmetic on columns (one value per query of a group): exponential, visible lanes, dropout bits.
#if defined(SPARSE_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_LANES_INL_H_
#undef SPARSE_CPU_LANES_INL_H_
#else
#define SPARSE_CPU_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "etc_core/base/philox-inl.h"
#include "etc_core/base/power_of_two-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/tile_walk.h"
#include "sparse/visible_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatMask = hn::Mask<FloatTag>;
using IntTag = hn::RebindToSigned<FloatTag>;
using UintTag = hn::RebindToUnsigned<FloatTag>;
using UintVec = hn::Vec<UintTag>;
using WideTag = hn::RepartitionToWide<UintTag>;

// 2^x (base/power_of_two-inl.h).
HWY_INLINE FloatVec power_of_two(FloatVec x) {
  return etc::HWY_NAMESPACE::power_of_two(FloatTag(), x);
}

// The lanes of vector `v` whose bit is set.
HWY_INLINE FloatMask lanes_of(std::uint16_t bits, int v) {
  const FloatTag d;
  // LoadMaskBits reads bits from memory, starting at bit 0: shift this vector's queries to bit 0.
  const std::uint64_t shifted = static_cast<std::uint64_t>(bits) >> (v * kLanes);
  return hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(&shifted));  // may read 8 bytes
}

// A group's queries and some consecutive keys, in dropout's numbering.
struct DropoutPairs {
  std::uint64_t stream;  // dropout_key()
  std::uint32_t threshold;
  std::uint32_t head, first_query, first_key;
  std::int64_t keys;
};

// keep[j], bit i: whether dropout keeps pair (query first_query + i, key first_key + j). The bits are exactly those of
// dropout_block in etc_core/base/random.h: one Philox call gives four consecutive keys, here for a vector of queries.
HWY_INLINE void dropout_keep_bits(const DropoutPairs& pairs, std::uint16_t* keep) {
  const auto [stream, threshold, head, first_query, first_key, keys] = pairs;
  // Philox multiplies 32 by 32 bits to 64 bits, which vector instructions offer for every other lane only. Queries in
  // even and in odd lanes are therefore processed separately.
  const WideTag d;
  const UintTag d32;
  const UintVec least = hn::Set(d32, threshold);
  std::fill_n(keep, keys, std::uint16_t{0});
  // Blocks of four keys may begin before the first key and end after the last; those numbers are discarded.
  const std::int64_t end = static_cast<std::int64_t>(first_key) + keys;
  for (std::uint32_t block = first_key / 4; static_cast<std::int64_t>(block) * 4 < end; ++block) {
    for (int v = 0; v < kGroupVectors; ++v) {
      const auto queries = hn::BitCast(d, hn::Iota(d32, first_query + static_cast<std::uint32_t>(v * kLanes)));
      hn::Vec<WideTag> even[4] = {hn::Set(d, std::uint64_t{block}), queries, hn::Set(d, std::uint64_t{head}),
                                  hn::Zero(d)};
      hn::Vec<WideTag> odd[4] = {even[0], hn::ShiftRight<32>(queries), even[2], even[3]};
      etc::HWY_NAMESPACE::philox_lanes(d, even, stream);
      etc::HWY_NAMESPACE::philox_lanes(d, odd, stream);
      for (std::int64_t word = 0; word < 4; ++word) {
        const std::int64_t j = static_cast<std::int64_t>(block) * 4 + word - first_key;
        // Skip words of keys before the first and after the last.
        if (j < 0 || j >= keys) continue;
        // Recombine even and odd lanes.
        const UintVec bits = hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(odd[word])), hn::BitCast(d32, even[word]));
        // Mask bits are stored to memory: 8 or 16 queries are one or two bytes.
        std::uint8_t bytes[8] = {};
        hn::StoreMaskBits(d32, hn::Eq(hn::Max(bits, least), bits), bytes);  // bits >= least
        std::uint16_t kept;
        std::memcpy(&kept, bytes, sizeof(kept));
        keep[j] = static_cast<std::uint16_t>(keep[j] | kept << (v * kLanes));
      }
    }
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
