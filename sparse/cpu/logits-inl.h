// From dot products to logits: scale, relative terms, running scores, masks. Forward in fp32 and bf16, and backward,
// make their scores here. Highway's per-target include guard.
#if defined(SPARSE_CPU_LOGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_LOGITS_INL_H_
#undef SPARSE_CPU_LOGITS_INL_H_
#else
#define SPARSE_CPU_LOGITS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "sparse/attention_checks.h"
#include "sparse/cpu/group_scratch-inl.h"
#include "sparse/cpu/lanes-inl.h"
#include "sparse/cpu/register_tile-inl.h"
#include "sparse/cpu/tile_walk.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// table = (table + rel_bias) / sqrt(D); `table` holds q·rel.
HWY_INLINE void finish_relative_terms(const HeadContext& head, float* table) {
  const FloatTag d;
  const FloatVec scale = hn::Set(d, head.scale);
  for (std::int64_t r = 0; r < head.labels; ++r) {
    const FloatVec bias = hn::Set(d, head.relative_biases[r]);
    for (int part = 0; part < kParts; ++part) {
      float* place = table + r * kGroup + part * kLanes;
      hn::StoreU(hn::Mul(hn::Add(hn::LoadU(d, place), bias), scale), d, place);
    }
  }
}

// table[r][i] = (q_i·rel[r] + rel_bias[r]) / sqrt(D)
HWY_INLINE void relative_terms(const HeadContext& head, const GroupScratch& scratch) {
  if (head.labels == 0) return;
  dot_products(scratch.q_lanes, head.relative_vectors, head.stride, head.labels, head.head_size, scratch.table);
  finish_relative_terms(head, scratch.table);
}

// Labels of a part, or none.
struct PartLabels {
  const std::uint32_t* label = nullptr;  // [keys]; null: no relative term
  const std::uint8_t* mixed = nullptr;

  PartLabels(const HeadContext& head, const Part& part) {
    if (head.labels == 0 || !part.tiles->relative) return;
    label = part.tiles->label.data() + part.column;
    mixed = part.tiles->mixed.data();
  }
};

// s of one column: q·k / sqrt(D) + relative term; `dots` holds q·k.
HWY_INLINE FloatVec score(const HeadContext& head, const PartLabels& labels, const float* table, const float* dots,
                          std::int64_t j, int part) {
  const FloatTag d;
  const FloatVec dot = hn::LoadU(d, dots + j * kGroup + part * kLanes), scale = hn::Set(d, head.scale);
  if (labels.label == nullptr) return hn::Mul(dot, scale);
  return hn::MulAdd(dot, scale, look_up(table, labels.label[j], labels.mixed, part));
}

HWY_INLINE FloatVec score_value(hn::Vec<IntTag> element) {
  const FloatTag d;
  return hn::Mul(hn::ConvertTo(d, element), hn::Set(d, kScoreStep));
}

HWY_INLINE hn::Vec<IntTag> score_element(FloatVec s) {
  return hn::NearestInt(hn::Mul(s, hn::Set(FloatTag(), kScoreStepsPerUnit)));
}

// Logits of one part, in base 2, in place of its dot products; masked ones -inf. Brings C forward. `max` follows the
// largest logit, `bad` collects visible pairs whose score leaves the range of C (a comparison that is false for NaN,
// too).
template <ScoreMode kMode>
HWY_INLINE void logits_in_mode(const HeadContext& head, const Part& part, const TypeScores& scores, const float* table,
                               float* s, FloatVec* max, FloatMask& bad) {
  const FloatTag d;
  const IntTag di;
  const PartLabels labels(head, part);
  const std::uint16_t* const visible_columns = part.tiles->visible.data() + part.column;
  const std::int64_t keys = part.keys;
  FloatVec largest[kParts];  // in registers: `max` might alias the scores
  for (int p = 0; p < kParts; ++p) largest[p] = max[p];
  const FloatVec hidden = hn::Set(d, -std::numeric_limits<float>::infinity());
  const FloatVec limit = hn::Set(d, kScoreLimit);
  const FloatVec logit_scale = hn::Set(d, kMode == ScoreMode::none ? kLog2E : kLog2E * scores.logit_scale);
  ScoreElement* running = kMode == ScoreMode::none ? nullptr : scores.running + part.column * kGroup;
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int p = 0; p < kParts; ++p) {
      float* place = s + j * kGroup + p * kLanes;
      const FloatMask visible = lanes_of(visible_columns[j], p);
      FloatVec logit;
      if constexpr (kMode == ScoreMode::none) {
        logit = score(head, labels, table, s, j, p);
      } else {
        ScoreElement* c_place = running + j * kGroup + p * kLanes;
        hn::Vec<IntTag> c;
        if constexpr (kMode == ScoreMode::read) {
          c = hn::LoadU(di, c_place);
          logit = score_value(c);
        } else {
          const FloatVec own = score(head, labels, table, s, j, p);
          c = score_element(own);
          if constexpr (kMode != ScoreMode::write) c = hn::Add(c, hn::LoadU(di, c_place));
          // Past the caches: nobody reads C before the next layer, and writing whole lines saves reading them.
          if constexpr (kMode == ScoreMode::write) hn::Stream(c, di, c_place);
          if constexpr (kMode == ScoreMode::add) hn::StoreU(c, di, c_place);
          logit = score_value(c);
          const FloatMask good = hn::And(hn::Le(hn::Abs(own), limit), hn::Le(hn::Abs(logit), limit));
          bad = hn::Or(bad, hn::AndNot(good, visible));
        }
      }
      logit = hn::Mul(logit, logit_scale);
      logit = hn::IfThenElse(visible, logit, hidden);
      largest[p] = hn::Max(largest[p], logit);
      hn::StoreU(logit, d, place);
    }
  }
  for (int p = 0; p < kParts; ++p) max[p] = largest[p];
}

// The same with the mode of the part's type. Throws Error when a score leaves the range of C.
HWY_INLINE void logits_of_part(const HeadContext& head, const Part& part, const TypeScores& scores, const float* table,
                               float* s, FloatVec* max) {
  const FloatTag d;
  FloatMask bad = hn::MaskFromVec(hn::Zero(d));
  switch (scores.mode) {
    case ScoreMode::none:
      logits_in_mode<ScoreMode::none>(head, part, scores, table, s, max, bad);
      break;
    case ScoreMode::write:
      logits_in_mode<ScoreMode::write>(head, part, scores, table, s, max, bad);
      break;
    case ScoreMode::add:
      logits_in_mode<ScoreMode::add>(head, part, scores, table, s, max, bad);
      break;
    case ScoreMode::add_unkept:
      logits_in_mode<ScoreMode::add_unkept>(head, part, scores, table, s, max, bad);
      break;
    case ScoreMode::read:
      logits_in_mode<ScoreMode::read>(head, part, scores, table, s, max, bad);
      break;
  }
  if (!hn::AllFalse(d, bad)) fail_scores_out_of_range(part.tiles->type, scores.layer);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
