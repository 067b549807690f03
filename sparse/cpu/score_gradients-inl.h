// The vector work of backward for one key block: probabilities p and the gradients dC of scores, from q·k or C, and dout·v.
// Highway's per-target include guard.
#if defined(SPARSE_CPU_SCORE_GRADIENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_SCORE_GRADIENTS_INL_H_
#undef SPARSE_CPU_SCORE_GRADIENTS_INL_H_
#else
#define SPARSE_CPU_SCORE_GRADIENTS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>

#include "sparse/cpu/dropout-inl.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/logits-inl.h"
#include "sparse/cpu/score_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether the type carries scores. If so, p is computed from C, which includes this layer's s, and only rewinding needs
// q·k.
HWY_INLINE bool carries(const TypeScoreGradients& scores) {
  return scores.mode != ScoreGradientMode::none;
}

// Prefetches C and dC of a key block.
HWY_INLINE void prefetch_scores(const KeyBlock& block, const TypeScoreGradients& scores) {
  if (scores.mode == ScoreGradientMode::inner) columns_ahead(scores.gradient, block).prefetch(block.keys);
  if (carries(scores)) columns_ahead(scores.running, block).prefetch(block.keys);
}

// In bf16, whose products are too short to prefetch a key block's C and dC meanwhile, the vector work prefetches them
// kScoresAhead columns ahead; they are contiguous across key blocks.
class ScoresAhead {
 public:
  HWY_INLINE ScoresAhead(const HeadContext& head, const KeyBlock& block, const ScoreElement* running,
                         const float* gradient)
      : running_(head.bf16 != nullptr ? running : nullptr),
        gradient_(head.bf16 != nullptr ? gradient : nullptr),
        first_((block.column + kScoresAhead<float>)*kGroup) {}

  HWY_INLINE void prefetch(std::int64_t j) const {
    if (running_ != nullptr) hwy::Prefetch(running_ + first_ + j * kGroup);
    if (gradient_ != nullptr) hwy::Prefetch(gradient_ + first_ + j * kGroup);
  }

 private:
  const ScoreElement* const running_;  // null: not prefetched
  const float* const gradient_;
  const std::int64_t first_;
};

// p of one key block: 2^(logit - lse), both in base 2, at visible pairs, else 0. Overwrites q·k (multiply_block).
HWY_INLINE void probabilities_of_block(const HeadContext& head, const KeyBlock& block, const TypeScoreGradients& scores,
                                       const GroupScratch& scratch, const FloatVec* lse) {
  const FloatTag d;
  const IntTag di;
  const bool carried = carries(scores);
  const FloatVec logit_scale = hn::Set(d, carried ? kLog2E * scores.logit_scale : kLog2E);
  const std::uint16_t* const visible_columns = block.tiles->visible.data() + block.column;         // [keys]
  const ScoreElement* const running = carried ? scores.running + block.column * kGroup : nullptr;  // [keys, kGroup]
  const std::int64_t keys = block.keys;
  const ScoresAhead ahead(head, block, carried ? scores.running : nullptr, nullptr);
  with_any_term(
      scratch.terms, block, !carried, [&](const auto& term) HWY_ATTR __attribute__((always_inline)) {
        for (std::int64_t j = 0; j < keys; ++j) {
          ahead.prefetch(j);
          for (int v = 0; v < kGroupVectors; ++v) {
            const std::int64_t at = j * kGroup + v * kLanes;
            const FloatVec logit =
                carried ? score_value(hn::LoadU(di, running + at)) : score(head, term, scratch.p, j, v);
            // No maximum is needed: lse is not less than any logit, so the power is at most 1.
            const FloatVec probability = power_of_two(hn::MulSub(logit, logit_scale, lse[v]));
            hn::StoreU(hn::IfThenElseZero(lanes_of(visible_columns[j], v), probability), d, scratch.p + at);
          }
        }
      });
}

// forward: out_i = sum_j p_ij dropout_ij v_j, p = softmax(c·C).  So with dp_ij = dropout_ij dout_i·v_j (v with rel_v)
//   dC_ij (+)= c p_ij (dp_ij - delta_i),  delta_i = dout_i·out_i.
// Replaces dout·v in scratch.ds by scale·dC, which is multiplied with q, k and the tables, and p in scratch.p by the p
// after dropout. Used with dropout only; without dropout see below.
HWY_INLINE void score_gradients_of_block(const HeadContext& head, const KeyBlock& block,
                                         const TypeScoreGradients& scores, std::int64_t first_query,
                                         const GroupScratch& scratch, const FloatVec* delta) {
  const FloatTag d;
  keep_bits_of_block(head, block, first_query, scratch.keep);
  const FloatVec kept_scale = hn::Set(d, head.kept_scale);
  const FloatVec logit_scale = hn::Set(d, scores.logit_scale);
  const FloatVec scale = hn::Set(d, head.scale);
  const ScoreGradientMode mode = scores.mode;
  // Locals: through references these values would have to be reloaded after every store.
  float* const gradients = mode == ScoreGradientMode::none ? nullptr : scores.gradient + block.column * kGroup;
  const std::int64_t keys = block.keys;
  const ScoresAhead ahead(head, block, nullptr, mode == ScoreGradientMode::inner ? scores.gradient : nullptr);
  for (std::int64_t j = 0; j < keys; ++j) {
    ahead.prefetch(j);
    for (int v = 0; v < kGroupVectors; ++v) {
      const std::int64_t at = j * kGroup + v * kLanes;
      const FloatVec probability = hn::LoadU(d, scratch.p + at);
      const FloatMask kept = lanes_of(scratch.keep[j], v);
      const FloatVec dp = hn::IfThenElseZero(kept, hn::Mul(hn::LoadU(d, scratch.ds + at), kept_scale));
      hn::StoreU(hn::IfThenElseZero(kept, hn::Mul(probability, kept_scale)), d, scratch.p + at);
      FloatVec dc = hn::Mul(hn::Mul(probability, hn::Sub(dp, delta[v])), logit_scale);
      if (mode != ScoreGradientMode::none) {
        float* gradient = gradients + at;  // [kLanes]
        if (mode == ScoreGradientMode::inner) {
          dc = hn::Add(dc, hn::LoadU(d, gradient));
          hn::StoreU(dc, d, gradient);
        } else {
          hn::Stream(dc, d, gradient);  // a non-temporal store, as of C in mode write
        }
      }
      hn::StoreU(hn::Mul(dc, scale), d, scratch.ds + at);
    }
  }
}

// Probabilities and score gradients in one loop, without dropout, for types without running scores.
HWY_INLINE void plain_gradients_of_block(const HeadContext& head, const KeyBlock& block, const GroupScratch& scratch,
                                         const RowStatistics& rows) {
  const FloatTag d;
  const FloatVec log2e = hn::Set(d, kLog2E), scale = hn::Set(d, head.scale);
  const std::uint16_t* const visible_columns = block.tiles->visible.data() + block.column;  // [keys]
  float *const p = scratch.p, *const ds = scratch.ds;
  const std::int64_t keys = block.keys;
  with_any_term(
      scratch.terms, block, /*unscored=*/true, [&](const auto& term) HWY_ATTR __attribute__((always_inline)) {
        for (std::int64_t j = 0; j < keys; ++j) {
          for (int v = 0; v < kGroupVectors; ++v) {
            const std::int64_t at = j * kGroup + v * kLanes;
            const FloatVec logit = score(head, term, p, j, v);
            const FloatVec probability = hn::IfThenElseZero(lanes_of(visible_columns[j], v),
                                                            power_of_two(hn::MulSub(logit, log2e, rows.lse[v])));
            hn::StoreU(probability, d, p + at);
            const FloatVec dc = hn::Mul(probability, hn::Sub(hn::LoadU(d, ds + at), rows.delta[v]));
            hn::StoreU(hn::Mul(dc, scale), d, ds + at);
          }
        }
      });
}

// The same for a type that carries scores: p is computed from C.
template <ScoreGradientMode kMode>
HWY_INLINE void carried_gradients_of_block(const HeadContext& head, const KeyBlock& block,
                                           const TypeScoreGradients& scores, const GroupScratch& scratch,
                                           const RowStatistics& rows) {
  const FloatTag d;
  const FloatVec power_scale = hn::Set(d, kLog2E * scores.logit_scale), logit_scale = hn::Set(d, scores.logit_scale);
  const FloatVec scale = hn::Set(d, head.scale);
  const std::uint16_t* const visible_columns = block.tiles->visible.data() + block.column;  // [keys]
  const ScoreElement* const running = scores.running + block.column * kGroup;               // [keys, kGroup]
  float* const gradients = scores.gradient + block.column * kGroup;                         // [keys, kGroup]
  float *const p = scratch.p, *const ds = scratch.ds;
  const ScoresAhead ahead(head, block, scores.running, kMode == ScoreGradientMode::inner ? scores.gradient : nullptr);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    ahead.prefetch(j);
    for (int v = 0; v < kGroupVectors; ++v) {
      const std::int64_t at = j * kGroup + v * kLanes;
      const FloatVec logit = score_value(hn::LoadU(IntTag(), running + at));
      const FloatVec probability = hn::IfThenElseZero(lanes_of(visible_columns[j], v),
                                                      power_of_two(hn::MulSub(logit, power_scale, rows.lse[v])));
      hn::StoreU(probability, d, p + at);
      FloatVec dc = hn::Mul(hn::Mul(probability, hn::Sub(hn::LoadU(d, ds + at), rows.delta[v])), logit_scale);
      if constexpr (kMode == ScoreGradientMode::inner) {
        dc = hn::Add(dc, hn::LoadU(d, gradients + at));
        hn::StoreU(dc, d, gradients + at);
      } else {
        hn::Stream(dc, d, gradients + at);  // a non-temporal store, as of C in mode write
      }
      hn::StoreU(hn::Mul(dc, scale), d, ds + at);
    }
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
