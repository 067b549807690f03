// From dot products to logits: scale, relative terms, running scores, masks. Forward in fp32 and bf16, and backward,
// compute their scores here. Highway's per-target include guard.
#if defined(SPARSE_CPU_LOGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_LOGITS_INL_H_
#undef SPARSE_CPU_LOGITS_INL_H_
#else
#define SPARSE_CPU_LOGITS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "etc_core/base/nearest_int-inl.h"
#include "sparse/attention_checks.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/score_terms-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// s of one column: scale·m + terms; `dots` [keys, kGroup] holds m.
template <typename Term>
HWY_INLINE FloatVec score(const HeadContext& head, const Term& term, const float* dots, std::int64_t j, int v) {
  const FloatTag d;
  return term.score(hn::LoadU(d, dots + j * kGroup + v * kLanes), hn::Set(d, head.scale), j, v);
}

// C as a float in units of its number type; one unit is unit_of<Element>, a power of two, so that later scaling is
// exact. Conversions of 32-bit fixed point (score_element.h) are exact for |C| below 16; above, the error is at most
// half a unit in the last place of the float.
HWY_INLINE FloatVec units(hn::Vec<IntTag> c) {
  return hn::ConvertTo(FloatTag(), c);
}
HWY_INLINE FloatVec units(FloatVec c) {
  return c;
}
template <typename Element>
constexpr float unit_of = 1.0f;
template <>
constexpr float unit_of<ScoreElement> = kScoreStep;

HWY_INLINE FloatVec score_value(hn::Vec<IntTag> element) {
  return hn::Mul(units(element), hn::Set(FloatTag(), unit_of<ScoreElement>));
}

// Rounded to nearest even, by the same instruction in forward and backward: a layer subtracts exactly what it added.
HWY_INLINE hn::Vec<IntTag> score_element(FloatVec s) {
  return etc::HWY_NAMESPACE::nearest_int(hn::Mul(s, hn::Set(FloatTag(), kScoreStepsPerUnit)));
}

// Vector tags of C in 16 bits.
using HalfTag = hn::Rebind<hwy::float16_t, FloatTag>;
using HalfBitsTag = hn::RebindToUnsigned<HalfTag>;

// One vector of pairs, in units of C's type.
template <typename Vec>
struct ScoreAndSum {
  Vec own, sum;  // this layer's s, and C including it
};

// Adds this layer's s (`own`) to C at `place`. The sum is stored there unless the mode is add_unkept.
template <ScoreMode kMode>
HWY_INLINE ScoreAndSum<hn::Vec<IntTag>> bring_forward(FloatVec own, ScoreElement* place) {
  const IntTag di;
  const hn::Vec<IntTag> s = score_element(own);
  hn::Vec<IntTag> c = s;
  if constexpr (kMode != ScoreMode::write) c = hn::Add(c, hn::LoadU(di, place));
  if constexpr (kMode != ScoreMode::add_unkept) hn::StoreU(c, di, place);
  return {s, c};
}

template <ScoreMode kMode>
HWY_INLINE ScoreAndSum<FloatVec> bring_forward(FloatVec own, HalfScore* place) {
  const FloatTag d;
  const HalfTag dh;
  const HalfBitsTag db;
  FloatVec c = own;
  if constexpr (kMode != ScoreMode::write) c = hn::Add(c, hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(db, place))));
  // Rounded to nearest even. A masked pair may hold infinity or NaN, since it is never read as a score.
  if constexpr (kMode != ScoreMode::add_unkept) {
    hn::StoreU(hn::BitCast(db, hn::DemoteTo(dh, c)), db, place);
  }
  return {own, c};
}

// |x| as an unsigned integer that increases with it. For a float these are its bits: infinity is larger than any
// number, NaN larger than infinity. An s that does not fit into 32 bits becomes -2^31, the largest magnitude.
HWY_INLINE UintVec magnitude(hn::Vec<IntTag> c) {
  return hn::BitCast(UintTag(), hn::Abs(c));
}
HWY_INLINE UintVec magnitude(FloatVec x) {
  return hn::BitCast(UintTag(), hn::Abs(x));
}

// The magnitude of kScoreLimit in a number type.
template <typename Element>
HWY_INLINE UintVec largest_in_range() {
  constexpr bool kFixedPoint = std::is_same_v<Element, ScoreElement>;
  if constexpr (kFixedPoint) return hn::Set(UintTag(), static_cast<std::uint32_t>(kScoreLimit * kScoreStepsPerUnit));
  return magnitude(hn::Set(FloatTag(), kScoreLimit));
}

// How many columns of C are prefetched ahead of the current one where the products do not prefetch them: in mode read,
// which has none, and in bf16, where they are too short. 2 KB, which memory delivers while the same number of columns is
// computed. The hardware prefetcher works only within a 4 KB page
// and starts again at each page.
template <typename Element>
constexpr std::int64_t kScoresAhead = 2048 / (kGroup * static_cast<std::int64_t>(sizeof(Element)));

// A key block's columns of C or dC, to be prefetched during its products, which are not limited by memory.
//   array [columns, kGroup]: of one type and head
template <typename Number>
HWY_INLINE ColumnsAhead columns_ahead(const Number* array, const KeyBlock& block) {
  return {reinterpret_cast<const char*>(array + block.column * kGroup), kGroup * sizeof(Number)};
}

HWY_INLINE ColumnsAhead scores_ahead(const TypeScores& scores, const KeyBlock& block) {
  if (scores.mode == ScoreMode::none) return {};
  return scores.half != nullptr ? columns_ahead(scores.half, block) : columns_ahead(scores.running, block);
}

// C of one type and head.
template <typename Element>
struct Running {
  ScoreMode mode = ScoreMode::none;
  Element* place = nullptr;  // [columns, kGroup]
  float logit_scale = 1.0f;
};

// Computes the logits of a key block's columns in base 2, one column at a time; masked logits are -inf. Updates C, and
// tracks the largest logit and the largest magnitude of visible scores, which shows whether one is out of the range of
// C (NaN counts as out of range). Mode and term are template arguments, so the only branch is the look-up of mixed
// labels.
template <ScoreMode kMode, typename Element, typename Term>
class ColumnLogits {
 public:
  // dots [keys, kGroup]: m. max: the largest logits so far.
  HWY_INLINE ColumnLogits(const HeadContext& head, const KeyBlock& block, const Running<Element>& scores,
                          const Term& term, const float* dots, const FloatVec* max)
      : dots_(dots),
        visible_columns_(block.tiles->visible.data() + block.column),
        running_(kMode == ScoreMode::none ? nullptr : scores.place + block.column * kGroup),
        asks_(kMode == ScoreMode::read || (kMode != ScoreMode::none && head.bf16 != nullptr)),
        term_(term),
        scale_(hn::Set(FloatTag(), head.scale)),
        logit_scale_(hn::Set(
            FloatTag(), kMode == ScoreMode::none ? head.logit_unit : unit_of<Element> * (kLog2E * scores.logit_scale))),
        hidden_(hn::Set(FloatTag(), -std::numeric_limits<float>::infinity())),
        largest_magnitude_(hn::Zero(UintTag())) {
    for (int v = 0; v < kGroupVectors; ++v) largest_[v] = max[v];
  }

  // Prefetches C, which is contiguous across key blocks.
  HWY_INLINE void prefetch_ahead(std::int64_t j) const {
    if (asks_) hwy::Prefetch(running_ + (j + kScoresAhead<Element>)*kGroup);
  }

  // The logits of key j for the queries of vector v, from one line of m, one line of C and 16 visible bits.
  HWY_INLINE FloatVec at(std::int64_t j, int v) {
    const std::int64_t place = j * kGroup + v * kLanes;
    const FloatMask visible = lanes_of(visible_columns_[j], v);
    FloatVec logit;
    // A type without running scores never rounds s to C's step.
    if constexpr (kMode == ScoreMode::none) {
      logit = own_score(j, v);
    } else if constexpr (kMode == ScoreMode::read) {
      logit = units(hn::LoadU(IntTag(), running_ + place));
    } else {
      const auto scores = bring_forward<kMode>(own_score(j, v), running_ + place);
      logit = units(scores.sum);
      // Tracked here because s and C are in registers; masked pairs may have any value.
      const auto seen = hn::RebindMask(UintTag(), visible);
      largest_magnitude_ = hn::Max(largest_magnitude_, hn::IfThenElseZero(seen, magnitude(scores.sum)));
      // In the first layer C equals s.
      if constexpr (kMode != ScoreMode::write) {
        largest_magnitude_ = hn::Max(largest_magnitude_, hn::IfThenElseZero(seen, magnitude(scores.own)));
      }
    }
    // One factor for log2(e), C's unit and c of the running mean.
    logit = hn::IfThenElse(visible, hn::Mul(logit, logit_scale_), hidden_);
    largest_[v] = hn::Max(largest_[v], logit);
    return logit;
  }

  // Stores the largest logits, and returns per lane whether a score is out of range.
  HWY_INLINE FloatMask end(FloatVec* max) const {
    for (int v = 0; v < kGroupVectors; ++v) max[v] = largest_[v];
    return hn::RebindMask(FloatTag(), hn::Gt(largest_magnitude_, largest_in_range<Element>()));
  }

 private:
  HWY_INLINE FloatVec own_score(std::int64_t j, int v) const {
    return term_.score(hn::LoadU(FloatTag(), dots_ + j * kGroup + v * kLanes), scale_, j, v);
  }

  // By value: through references they would have to be reloaded after every store.
  const float* const dots_;
  const std::uint16_t* const visible_columns_;  // [keys]
  Element* const running_;                      // [keys, kGroup]
  const bool asks_;
  const Term term_;
  const FloatVec scale_, logit_scale_, hidden_;
  FloatVec largest_[kGroupVectors];
  UintVec largest_magnitude_;  // of s and of C at visible pairs
};

// Arrays of a key block.
struct LogitPlaces {
  float* s;       // [keys, kGroup]: m on input, the loop's result on output
  FloatVec* max;  // the largest logits so far
};

// Replaces the dot products of a key block by its logits, in one mode.
template <ScoreMode kMode, typename Element, typename Term>
HWY_INLINE FloatMask logits_in_mode(const HeadContext& head, const KeyBlock& block, const Running<Element>& scores,
                                    const Term& term, const LogitPlaces& places) {
  ColumnLogits<kMode, Element, Term> columns(head, block, scores, term, places.s, places.max);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    columns.prefetch_ahead(j);
    for (int v = 0; v < kGroupVectors; ++v) {
      hn::StoreU(columns.at(j, v), FloatTag(), places.s + j * kGroup + v * kLanes);
    }
  }
  return columns.end(places.max);
}

// For a type without running scores.
HWY_INLINE void unscored_logits(const HeadContext& head, const KeyBlock& block, const TermScratch& terms, float* s,
                                FloatVec* max) {
  with_any_term(
      terms, block, /*unscored=*/true, [&](const auto& term) HWY_ATTR __attribute__((always_inline)) {
        logits_in_mode<ScoreMode::none>(head, block, Running<ScoreElement>{}, term, LogitPlaces{s, max});
      });
}

// For a type that carries scores.
template <typename Element, typename Term>
HWY_INLINE FloatMask carried_logits(const HeadContext& head, const KeyBlock& block, const Running<Element>& scores,
                                    const Term& term, float* s, FloatVec* max) {
  switch (scores.mode) {
    case ScoreMode::write:
      return logits_in_mode<ScoreMode::write>(head, block, scores, term, LogitPlaces{s, max});
    case ScoreMode::add:
      return logits_in_mode<ScoreMode::add>(head, block, scores, term, LogitPlaces{s, max});
    default:
      return logits_in_mode<ScoreMode::add_unkept>(head, block, scores, term, LogitPlaces{s, max});
  }
}

// Replaces a key block's dot products by its logits. Throws Error when a score is out of the range of C.
HWY_INLINE void logits_of_block(const HeadContext& head, const KeyBlock& block, const TypeScores& scores,
                                const TermScratch& terms, float* s, FloatVec* max) {
  const FloatTag d;
  if (scores.mode == ScoreMode::none) return unscored_logits(head, block, terms, s, max);
  const Running<ScoreElement> exact{scores.mode, scores.running, scores.logit_scale};
  // C already includes all terms.
  if (scores.mode == ScoreMode::read) {
    logits_in_mode<ScoreMode::read>(head, block, exact, NoTerm(), LogitPlaces{s, max});
    return;
  }
  FloatMask bad = hn::MaskFromVec(hn::Zero(d));
  with_term(
      terms, block, [&](const auto& term) HWY_ATTR __attribute__((always_inline)) {
        if (scores.half != nullptr) {
          bad = carried_logits(head, block, Running<HalfScore>{scores.mode, scores.half, scores.logit_scale}, term, s,
                               max);
        } else {
          bad = carried_logits(head, block, exact, term, s, max);
        }
      });
  // Checked once per key block instead of per column: a branch in the loop would cost more than the wasted work after a
  // failure.
  if (!hn::AllFalse(d, bad)) fail_scores_out_of_range(head.op, block.tiles->type, scores.layer);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
