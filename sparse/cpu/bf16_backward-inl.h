// The products of backward with bf16 operands and fp32 sums. Probabilities, gradients of scores and the tables' sums
// stay fp32 as in group-inl.h. Per step of at most kBf16Keys keys, which ends at a multiple of the tiles' alignment:
//
//   s  [keys, 16] = K · q_pairs        dp [keys, 16] = V · dout_pairs        contracted over components
//   dq [stride, 16] += K by columns · pairs of keys of ds                    over keys
//   dk [keys, stride] += ds · pairs of queries of q,  dv += p · those of dout    over queries of two groups, after both
//
// Highway's per-target include guard.
#if defined(SPARSE_CPU_BF16_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_BF16_BACKWARD_INL_H_
#undef SPARSE_CPU_BF16_BACKWARD_INL_H_
#else
#define SPARSE_CPU_BF16_BACKWARD_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sparse/cpu/bf16_fill-inl.h"
#include "sparse/cpu/bf16_group-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/pair_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Builds a group's operands of all products from the rows already copied.
HWY_INLINE void pair_backward_group(const HeadContext& head, const GroupScratch& scratch) {
  const Bf16Scratch& own = scratch.bf16;
  // The rows contain this head only, from column 0 on.
  const auto turn = [&](const float* rows, std::uint16_t* of_components, std::uint16_t* of_queries) HWY_ATTR {
    round_group(head, rows, own.rows);
    pair_components(head, own.rows, of_components);
    pair_queries(head, rows, own.groups, of_queries);
  };
  turn(scratch.q_rows, own.q_pairs, own.q_of_queries);
  turn(scratch.dout_rows, own.dout_pairs, own.dout_of_queries);
  std::fill_n(own.out_columns, head.stride * kGroup, 0.0f);
  head.bf16->open_sums(head.stride, own.out_columns);
}

// Zeroes the rows of a key block's tiles that the other group of the two has not touched.
HWY_INLINE void touch_tiles(const KeyBlock& block) {
  const Bf16Panel& panel = block.panel->bf16();
  constexpr std::int64_t kNumbers = kTileRows16 * kTilePairs;
  const hn::ScalableTag<std::uint16_t> d;
  const auto zero = [&](std::uint16_t* to) HWY_ATTR {
    for (std::size_t c = 0; c < kNumbers; c += hn::Lanes(d)) hn::StoreU(hn::Zero(d), d, to + c);
  };
  for (std::int64_t n = block.row / kTileRows16; n * kTileRows16 < block.row + block.keys; ++n) {
    if (panel.touched[n] != 0) continue;
    panel.touched[n] = 1;
    zero(panel.gradient_rows + n * kNumbers);
    zero(panel.probability_rows + n * kNumbers);
  }
}

// Rounds the columns of a key block as rows, half rows of kTilePairs.   w [keys, kGroup], to [keys, kTilePairs]
HWY_INLINE void round_columns(const float* w, std::int64_t keys, std::uint16_t* to) {
  const FloatTag d;
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < kGroupVectors; ++v) {
      store_numbers<false>(hn::LoadU(d, w + j * kGroup + v * kLanes),
                           reinterpret_cast<Bf16*>(to + j * kTilePairs + v * kLanes));
    }
  }
}

// Rounds the columns of a key block as pairs of consecutive keys, with `lead` zero keys before and zeros up to the next
// multiple of the alignment.
//   w [keys, kGroup]
HWY_INLINE void pair_columns(const HeadContext& head, const float* w, std::int64_t keys, std::int64_t lead,
                             std::uint16_t* to) {
  const auto column = [&](std::int64_t j) { return j >= 0 && j < keys ? w + j * kGroup : nullptr; };
  const std::int64_t end = round_up(lead + keys, head.bf16->key_alignment);
  for (std::int64_t j = 0; j < end; j += 2) {
    head.bf16->round_pairs(column(j - lead), column(j + 1 - lead), kGroup, kGroup, to + j * kGroup);
  }
}

// Backward of the pair terms of m: adds a key block's gradients of the tables, and turns g = scale·dC into the gradient
// of q·k. carried: q·k was not computed for this block.   g [keys, kGroup]
HWY_NOINLINE inline void bf16_join_gradients(const HeadContext& head, const KeyBlock& block,
                                             const GroupScratch& scratch, bool carried, float* g) {
  const TermScratch& terms = scratch.terms;
  if (carried && terms.factors != nullptr) {
    multiply_rows(head, block, block.panel->bf16().k_rows, scratch.bf16.q_pairs, terms.dots);
  }
  join_gradients(terms, block, g);
}

#if HWY_TARGET <= HWY_AVX3
// Two keys' numbers rounded to nearest even: the first one's in the lower half. An instruction that the vector target
// does not include; Bf16Tiles::converts says whether the processor has it.
HWY_INLINE __m512i round_two(const float* first) {
  __m512i joined;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(joined) : "v"(_mm512_loadu_ps(first)), "v"(_mm512_loadu_ps(first + kGroup)));
  return joined;
}

// pair_columns of ds and round_columns of ds and p at once, for whole pairs of keys.
HWY_INLINE void round_key_pairs(const float* ds, const float* p, std::int64_t keys, std::uint16_t* pairs,
                                std::uint16_t* ds_rows, std::uint16_t* p_rows) {
  alignas(64) static constexpr std::uint16_t kInterleaved[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                               21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                               11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_load_si512(kInterleaved);
  const auto store_rows = [](__m512i joined, std::uint16_t* to) HWY_ATTR {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(joined));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + kTilePairs), _mm512_extracti64x4_epi64(joined, 1));
  };
  for (std::int64_t j = 0; j < keys; j += 2) {
    const __m512i gradients = round_two(ds + j * kGroup);
    _mm512_storeu_si512(pairs + j * kGroup, _mm512_permutexvar_epi16(order, gradients));
    store_rows(gradients, ds_rows + j * kTilePairs);
    store_rows(round_two(p + j * kGroup), p_rows + j * kTilePairs);
  }
}
#endif

// Rounds the operands of a key block's gradient products.
//   scratch.p, scratch.ds [keys, kGroup]: probabilities after dropout and scale·dC
HWY_INLINE void round_gradients(const HeadContext& head, const KeyBlock& block, const GroupScratch& scratch,
                                bool carried) {
  std::uint16_t* const pairs = scratch.bf16.w_pairs[0];
  if (HWY_UNLIKELY(scratch.terms.joined[block.set])) bf16_join_gradients(head, block, scratch, carried, scratch.ds);
  touch_tiles(block);
  const Bf16Panel& panel = block.panel->bf16();
  const std::int64_t lead = lead_of(head, block), first = block.row * kTilePairs + scratch.bf16.groups * kGroup;
#if HWY_TARGET <= HWY_AVX3
  if (HWY_LIKELY(head.bf16->converts && lead % 2 == 0 && block.keys % 2 == 0)) {
    StepPairs{lead, block.keys, head.bf16->key_alignment, pairs}.clear_ends();
    return round_key_pairs(scratch.ds, scratch.p, block.keys, pairs + lead * kGroup, panel.gradient_rows + first,
                           panel.probability_rows + first);
  }
#endif
  pair_columns(head, scratch.ds, block.keys, lead, pairs);
  round_columns(scratch.ds, block.keys, panel.gradient_rows + first);
  round_columns(scratch.p, block.keys, panel.probability_rows + first);
}

// Adds dq of a key block, from the operands of round_gradients.
HWY_INLINE void multiply_gradients(const HeadContext& head, const KeyBlock& block, const Bf16Scratch& own) {
  const Bf16Panel& panel = block.panel->bf16();
  const std::int64_t lead = lead_of(head, block);
  head.bf16->weighted_sum(own.w_pairs[0], panel.column(panel.k_columns, block.row - lead), lead + block.keys,
                          head.stride, own.out_columns);
}

// Adds dk and dv of the keys that two groups (or the last one) see. Both groups at once, because loading and storing
// the gradients takes longer than the products.
HWY_NOINLINE inline void multiply_key_gradients(const HeadContext& head, const KeyPanel& keys, const Bf16Scratch& own) {
  const Bf16Panel& panel = keys.bf16();
  const std::int64_t stride = head.stride;
  head.bf16->outer_products(panel.gradient_rows, own.q_of_queries, stride, panel.touched, panel.tiles, keys.dk(0));
  head.bf16->outer_products(panel.probability_rows, own.dout_of_queries, stride, panel.touched, panel.tiles,
                            keys.dv(0));
  std::fill_n(panel.touched, panel.tiles, std::uint8_t{0});
}

// Writes dq of a group as rows.   scratch.out [kGroup, stride]
HWY_INLINE void bf16_finish_group(const HeadContext& head, const GroupScratch& scratch) {
  head.bf16->close_sums(head.stride, scratch.bf16.out_columns);
  for (std::int64_t c = 0; c < head.stride; c += kGroup) {
    transpose_block(scratch.bf16.out_columns + c * kGroup, kGroup, scratch.out + c, head.stride);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
