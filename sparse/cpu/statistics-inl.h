// One group of kGroup queries for attention_statistics: from logits in columns to sums per lane. The logits are
// computed with the code of forward (pair_terms-inl.h, score_terms-inl.h). Sums over keys are fp32 within a key block
// of kStatisticsKeys and double across key blocks, so that long rows lose no accuracy. Highway's
// per-target include guard.
#if defined(SPARSE_CPU_STATISTICS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_STATISTICS_INL_H_
#undef SPARSE_CPU_STATISTICS_INL_H_
#else
#define SPARSE_CPU_STATISTICS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sparse/cpu/group-inl.h"
#include "sparse/cpu/statistics_call.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = double[kGroup];  // one number per query

// The key blocks of a group, in the order of the arrays' columns: those of key set 0 come first.
struct GroupBlocks {
  const KeyBlock* blocks = nullptr;
  std::int64_t count = 0;
};

// Adds the partial sums of a key block to the sums of the group.
HWY_INLINE void add_lanes(const FloatVec* partial, double* to) {
  HWY_ALIGN float values[kGroup];
  for (int v = 0; v < kGroupVectors; ++v) hn::Store(partial[v], FloatTag(), values + v * kLanes);
  for (int i = 0; i < kGroup; ++i) to[i] += static_cast<double>(values[i]);
}

HWY_INLINE void clear(FloatVec* partial) {
  for (int v = 0; v < kGroupVectors; ++v) partial[v] = hn::Zero(FloatTag());
}

// ln(1+y) for 0 <= y <= 1 with an error of at most 4e-8: y times a polynomial through Chebyshev nodes.
HWY_INLINE FloatVec log_of_one_plus(FloatVec y) {
  const FloatTag d;
  FloatVec p = hn::Set(d, 0.005253457929939032f);
  p = hn::MulAdd(p, y, hn::Set(d, -0.02958850748836994f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.07836166769266129f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.13674770295619965f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.19111430644989014f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.24844369292259216f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.33319270610809326f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.49999502301216125f));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0f));
  return hn::Mul(p, y);
}

// The softmax of a group's logits over one key set. Lanes that see no key of the set have max 0 and sum 0.
struct LaneSoftmax {
  HWY_ALIGN float max[kGroup];
  Lanes sum;      // sum e^(l-max)
  Lanes log_sum;  // its logarithm; 0 if the sum is 0
  Lanes moment;   // sum (l-max) e^(l-max)
  Lanes visible;  // keys
  Lanes logits;   // sum (l-max)
};

// Computes max; NaN where a visible logit is NaN or infinite. kMoments: also counts the visible keys.
template <bool kMoments>
HWY_INLINE void largest_logits(const GroupBlocks& of, int set, const float* logits, LaneSoftmax& softmax) {
  const FloatTag d;
  const FloatVec none = hn::Set(d, -std::numeric_limits<float>::infinity());
  FloatVec largest[kGroupVectors];
  for (int v = 0; v < kGroupVectors; ++v) largest[v] = none;
  FloatMask bad[kGroupVectors];
  for (int v = 0; v < kGroupVectors; ++v) bad[v] = hn::MaskFromVec(hn::Zero(d));
  std::fill_n(softmax.visible, kGroup, 0.0);
  for (std::int64_t n = 0; n < of.count; logits += of.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = of.blocks[n];
    if (block.set != set) continue;
    const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
    FloatVec seen[kGroupVectors];
    clear(seen);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) {
        const FloatMask mask = lanes_of(visible[j], v);
        const FloatVec l = hn::LoadU(d, logits + j * kGroup + v * kLanes);
        // NaN compares as false.
        const FloatMask good = hn::Lt(hn::Abs(l), hn::Set(d, std::numeric_limits<float>::max()));
        bad[v] = hn::Or(bad[v], hn::AndNot(good, mask));
        largest[v] = hn::IfThenElse(hn::And(mask, good), hn::Max(largest[v], l), largest[v]);
        if constexpr (kMoments) seen[v] = hn::Add(seen[v], hn::IfThenElseZero(mask, hn::Set(d, 1.0f)));
      }
    }
    if constexpr (kMoments) add_lanes(seen, softmax.visible);
  }
  const FloatVec nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatVec finite = hn::IfThenZeroElse(hn::Eq(largest[v], none), largest[v]);
    hn::Store(hn::IfThenElse(bad[v], nan, finite), d, softmax.max + v * kLanes);
  }
}

// powers = e^(l-max), 0 for masked pairs, and their sum; with kMoments also the sums for entropy and deviation.
//   powers [columns, kGroup]: only those of the key set are written
template <bool kMoments>
HWY_INLINE void softmax_sums(const GroupBlocks& of, int set, const float* logits, float* powers, LaneSoftmax& softmax) {
  const FloatTag d;
  for (double* lanes : {softmax.sum, softmax.moment, softmax.logits}) std::fill_n(lanes, kGroup, 0.0);
  for (std::int64_t n = 0; n < of.count;
       logits += of.blocks[n].keys * kGroup, powers += of.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = of.blocks[n];
    if (block.set != set) continue;
    const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
    FloatVec sum[kGroupVectors], moment[kGroupVectors], total[kGroupVectors];
    for (FloatVec* partial : {sum, moment, total}) clear(partial);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) {
        const std::int64_t at = j * kGroup + v * kLanes;
        const FloatMask mask = lanes_of(visible[j], v);
        const FloatVec max = hn::Load(d, softmax.max + v * kLanes);
        const FloatVec l = hn::IfThenElseZero(mask, hn::Sub(hn::LoadU(d, logits + at), max));
        const FloatVec e = hn::IfThenElseZero(mask, power_of_two(hn::Mul(l, hn::Set(d, kLog2E))));
        hn::StoreU(e, d, powers + at);
        sum[v] = hn::Add(sum[v], e);
        if constexpr (kMoments) {
          moment[v] = hn::MulAdd(l, e, moment[v]);
          total[v] = hn::Add(total[v], l);
        }
      }
    }
    add_lanes(sum, softmax.sum);
    if constexpr (kMoments) {
      add_lanes(moment, softmax.moment);
      add_lanes(total, softmax.logits);
    }
  }
  for (int i = 0; i < kGroup; ++i) softmax.log_sum[i] = softmax.sum[i] > 0 ? std::log(softmax.sum[i]) : 0.0;
}

// squares += squared deviations of the visible logits from their mean over both key sets.   mean [kGroup]
HWY_INLINE void add_squares(const GroupBlocks& of, const float* logits, const float* mean, double* squares) {
  const FloatTag d;
  for (std::int64_t n = 0; n < of.count; logits += of.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = of.blocks[n];
    const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
    FloatVec sum[kGroupVectors];
    clear(sum);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) {
        const FloatVec off = hn::Sub(hn::LoadU(d, logits + j * kGroup + v * kLanes), hn::LoadU(d, mean + v * kLanes));
        const FloatVec own = hn::IfThenElseZero(lanes_of(visible[j], v), off);
        sum[v] = hn::MulAdd(own, own, sum[v]);
      }
    }
    add_lanes(sum, squares);
  }
}

// A group's softmaxes of one kind of logits: within each key set and over both. Exponentials are computed once: a key
// of set t has probability powers · of_whole[t] over both sets and powers · of_set[t] within its set.
struct GroupSoftmaxes {
  LaneSoftmax sets[kKeySets];
  Lanes max, sum, log_sum;                     // of the whole
  Lanes mass[kKeySets];                        // of each key set
  HWY_ALIGN float of_whole[kKeySets][kGroup];  // e^(max_t - max) / sum; 0 without a visible key
  HWY_ALIGN float of_set[kKeySets][kGroup];    // 1 / sum_t

  template <bool kMoments>
  void take(const GroupBlocks& of, const float* logits, float* powers) {
    for (int t = 0; t < kKeySets; ++t) {
      largest_logits<kMoments>(of, t, logits, sets[t]);
      softmax_sums<kMoments>(of, t, logits, powers, sets[t]);
    }
    for (int i = 0; i < kGroup; ++i) join(i);
  }

  void join(int i) {
    const LaneSoftmax &a = sets[0], &b = sets[1];
    const bool has[kKeySets] = {a.sum[i] > 0, b.sum[i] > 0};
    // NaN of either set propagates: its sum is NaN, neither positive nor zero.
    const bool nan = std::isnan(a.max[i]) || std::isnan(b.max[i]);
    const float larger = has[0] && has[1] ? std::max(a.max[i], b.max[i]) : (has[1] ? b.max[i] : a.max[i]);
    max[i] = static_cast<double>(larger);
    double scale[kKeySets];
    sum[i] = nan ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    for (int t = 0; t < kKeySets; ++t) {
      const double away = static_cast<double>(sets[t].max[i]) - max[i];
      scale[t] = has[t] ? (away == 0 ? 1.0 : std::exp(away)) : 0.0;
      sum[i] += scale[t] * sets[t].sum[i];
    }
    log_sum[i] = sum[i] > 0 ? std::log(sum[i]) : 0.0;
    for (int t = 0; t < kKeySets; ++t) {
      of_whole[t][i] = has[t] ? static_cast<float>(scale[t] / sum[i]) : 0.0f;
      of_set[t][i] = has[t] ? static_cast<float>(1 / sets[t].sum[i]) : 0.0f;
      mass[t][i] = has[t] ? scale[t] * sets[t].sum[i] / sum[i] : 0.0;
    }
  }
};

// p = probabilities over both key sets.   powers, p [columns, kGroup]
HWY_INLINE void probabilities_of(const GroupBlocks& of, const float* powers, const GroupSoftmaxes& softmax, float* p) {
  const FloatTag d;
  for (std::int64_t n = 0; n < of.count; ++n) {
    const float* const factor = softmax.of_whole[of.blocks[n].set];  // [kGroup]
    for (std::int64_t j = 0; j < of.blocks[n].keys; ++j, powers += kGroup, p += kGroup) {
      for (int v = 0; v < kGroupVectors; ++v) {
        hn::StoreU(hn::Mul(hn::LoadU(d, powers + v * kLanes), hn::Load(d, factor + v * kLanes)), d, p + v * kLanes);
      }
    }
  }
}

// One of two softmaxes of a group that are compared.
struct Compared {
  const float *logits, *powers;  // [columns, kGroup]
  const GroupSoftmaxes* softmax;
};

// Constants per lane for comparing one key set: ln(p/q) = (l_a - max_a) - (l_b - max_b) - ratio.
struct DivergenceLanes {
  HWY_ALIGN float max_a[kGroup], max_b[kGroup], whole_ratio[kGroup], set_ratio[kGroup];

  DivergenceLanes(int t, const GroupSoftmaxes& a, const GroupSoftmaxes& b) {
    for (int i = 0; i < kGroup; ++i) {
      max_a[i] = a.sets[t].max[i];
      max_b[i] = b.sets[t].max[i];
      const double apart = (static_cast<double>(max_a[i]) - a.max[i]) - (static_cast<double>(max_b[i]) - b.max[i]);
      whole_ratio[i] = static_cast<float>(a.log_sum[i] - b.log_sum[i] - apart);
      set_ratio[i] = static_cast<float>(a.sets[t].log_sum[i] - b.sets[t].log_sum[i]);
    }
  }
};

// A pair's part of twice the divergence in nats. With hi and lo the larger and smaller of p and q, y = (hi-lo)/(hi+lo)
// and D = |ln(p/q)| it is (hi+lo) ln(1+y) - lo D. This needs one short logarithm and is exactly 0 for p = q.
HWY_INLINE FloatVec divergence_part(FloatVec p, FloatVec q, FloatVec log_ratio) {
  const FloatTag d;
  const FloatVec hi = hn::Max(p, q), lo = hn::Min(p, q), both = hn::Add(p, q);
  const FloatVec y = hn::Div(hn::Sub(hi, lo), hn::Max(both, hn::Set(d, 1e-37f)));
  // Logits of masked pairs may have any value.
  const FloatVec away = hn::IfThenElseZero(hn::Gt(lo, hn::Zero(d)), hn::Mul(lo, hn::Abs(log_ratio)));
  return hn::Sub(hn::Mul(both, log_of_one_plus(y)), away);
}

// Adds twice the Jensen-Shannon divergence in nats per lane: over both key sets, and with kSets also for each key set,
// renormalised within it.
template <bool kSets>
HWY_INLINE void add_divergences(const GroupBlocks& of, Compared a, Compared b, double* whole, Lanes* of_sets) {
  const FloatTag d;
  const DivergenceLanes lanes[kKeySets] = {{0, *a.softmax, *b.softmax}, {1, *a.softmax, *b.softmax}};
  for (std::int64_t n = 0; n < of.count; ++n) {
    const std::int64_t keys = of.blocks[n].keys;
    const int t = of.blocks[n].set;
    FloatVec sum[kGroupVectors], set_sum[kGroupVectors];
    clear(sum);
    clear(set_sum);
    for (int v = 0; v < kGroupVectors; ++v) {
      const auto of_lane = [&](const float* values) { return hn::Load(d, values + v * kLanes); };
      const FloatVec max_a = of_lane(lanes[t].max_a), max_b = of_lane(lanes[t].max_b);
      const FloatVec ratio = of_lane(lanes[t].whole_ratio), set_ratio = of_lane(lanes[t].set_ratio);
      const FloatVec whole_a = of_lane(a.softmax->of_whole[t]), whole_b = of_lane(b.softmax->of_whole[t]);
      const FloatVec set_a = of_lane(a.softmax->of_set[t]), set_b = of_lane(b.softmax->of_set[t]);
      for (std::int64_t at = v * kLanes; at < keys * kGroup; at += kGroup) {
        const FloatVec la = hn::Sub(hn::LoadU(d, a.logits + at), max_a),
                       lb = hn::Sub(hn::LoadU(d, b.logits + at), max_b);
        const FloatVec apart = hn::Sub(la, lb);
        const FloatVec ea = hn::LoadU(d, a.powers + at), eb = hn::LoadU(d, b.powers + at);
        sum[v] = hn::Add(sum[v], divergence_part(hn::Mul(ea, whole_a), hn::Mul(eb, whole_b), hn::Sub(apart, ratio)));
        if constexpr (kSets) {
          set_sum[v] =
              hn::Add(set_sum[v], divergence_part(hn::Mul(ea, set_a), hn::Mul(eb, set_b), hn::Sub(apart, set_ratio)));
        }
      }
    }
    add_lanes(sum, whole);
    if constexpr (kSets) add_lanes(set_sum, of_sets[t]);
    for (const float** array : {&a.logits, &a.powers, &b.logits, &b.powers}) *array += keys * kGroup;
  }
}

// sums += p |distance| of key set 0, by query.
HWY_INLINE void add_distances(const GroupBlocks& of, std::int64_t first_distance, const float* p, double* sums) {
  const FloatTag d;
  for (std::int64_t n = 0; n < of.count; p += of.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = of.blocks[n];
    if (block.set != 0) continue;
    const std::int64_t first = block.panel->first_key() + block.row - first_distance;
    FloatVec sum[kGroupVectors];
    clear(sum);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) {
        const FloatVec away =
            hn::Sub(hn::Set(d, static_cast<float>(first + j)), hn::Iota(d, static_cast<float>(v * kLanes)));
        sum[v] = hn::MulAdd(hn::Abs(away), hn::LoadU(d, p + j * kGroup + v * kLanes), sum[v]);
      }
    }
    add_lanes(sum, sums);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
