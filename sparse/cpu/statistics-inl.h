// One group of kGroup queries for attention_statistics: from logits in columns to sums by lane. The logits themselves
// are made by the forward's own parts (pair_terms-inl.h, score_terms-inl.h). Sums over keys are fp32 within a key block
// of kStatisticsKeys and double beyond, so that long rows lose no digits. Highway's per-target include guard.
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

using Lanes = double[kGroup];  // a number of each query

// The key blocks of a group, and which of the arrays' columns are of which key set: set 0 comes first.
struct GroupBlocks {
  const KeyBlock* blocks = nullptr;
  std::int64_t count = 0;
};

// Partial sums of a key block to the sums of the group.
HWY_INLINE void add_lanes(const FloatVec* partial, double* to) {
  HWY_ALIGN float values[kGroup];
  for (int v = 0; v < kGroupVectors; ++v) hn::Store(partial[v], FloatTag(), values + v * kLanes);
  for (int i = 0; i < kGroup; ++i) to[i] += static_cast<double>(values[i]);
}

HWY_INLINE void clear(FloatVec* partial) {
  for (int v = 0; v < kGroupVectors; ++v) partial[v] = hn::Zero(FloatTag());
}

// ln(1+y) for 0 <= y <= 1, at most 4e-8 off: y times a polynomial through Chebyshev's nodes.
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

// The softmax of a group's logits over some columns. Lanes that see none of them: max 0 and sum 0.
struct LaneSoftmax {
  HWY_ALIGN float max[kGroup];
  Lanes sum;      // sum e^(l-max)
  Lanes moment;   // sum (l-max) e^(l-max)
  Lanes visible;  // keys
  Lanes logits;   // sum (l-max)
  Lanes squares;  // sum (l-max - its mean)^2
};

// max and the sums that need one walk; nan where a visible logit is none or infinite.
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
        // nan compares as false.
        const FloatMask good = hn::Lt(hn::Abs(l), hn::Set(d, std::numeric_limits<float>::max()));
        bad[v] = hn::Or(bad[v], hn::AndNot(good, mask));
        largest[v] = hn::IfThenElse(hn::And(mask, good), hn::Max(largest[v], l), largest[v]);
        seen[v] = hn::Add(seen[v], hn::IfThenElseZero(mask, hn::Set(d, 1.0f)));
      }
    }
    add_lanes(seen, softmax.visible);
  }
  const FloatVec nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatVec finite = hn::IfThenZeroElse(hn::Eq(largest[v], none), largest[v]);
    hn::Store(hn::IfThenElse(bad[v], nan, finite), d, softmax.max + v * kLanes);
  }
}

// sum, and with kMoments what entropy and deviation are made of.
template <bool kMoments>
HWY_INLINE void softmax_sums(const GroupBlocks& of, int set, const float* logits, LaneSoftmax& softmax) {
  const FloatTag d;
  for (double* lanes : {softmax.sum, softmax.moment, softmax.logits}) std::fill_n(lanes, kGroup, 0.0);
  for (std::int64_t n = 0; n < of.count; logits += of.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = of.blocks[n];
    if (block.set != set) continue;
    const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
    FloatVec sum[kGroupVectors], moment[kGroupVectors], total[kGroupVectors];
    for (FloatVec* partial : {sum, moment, total}) clear(partial);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) {
        const FloatMask mask = lanes_of(visible[j], v);
        const FloatVec max = hn::Load(d, softmax.max + v * kLanes);
        const FloatVec l = hn::IfThenElseZero(mask, hn::Sub(hn::LoadU(d, logits + j * kGroup + v * kLanes), max));
        const FloatVec e = hn::IfThenElseZero(mask, power_of_two(hn::Mul(l, hn::Set(d, kLog2E))));
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
}

// softmax.squares += over one key set, about the mean of all its group's visible logits.   mean, max [kGroup]
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

// Softmax over both key sets of what is known of each.
inline void join(const LaneSoftmax& a, const LaneSoftmax& b, LaneSoftmax& whole) {
  for (int i = 0; i < kGroup; ++i) {
    const bool has_a = a.sum[i] > 0, has_b = b.sum[i] > 0;
    // nan of either goes on: neither sum is then positive nor zero.
    if (std::isnan(a.max[i]) || std::isnan(b.max[i])) {
      whole.max[i] = std::numeric_limits<float>::quiet_NaN();
      whole.sum[i] = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    whole.max[i] = has_a && has_b ? std::max(a.max[i], b.max[i]) : (has_b ? b.max[i] : a.max[i]);
    const auto scaled = [&](const LaneSoftmax& of, bool has) {
      return has ? of.sum[i] * std::exp(static_cast<double>(of.max[i]) - static_cast<double>(whole.max[i])) : 0.0;
    };
    whole.sum[i] = scaled(a, has_a) + scaled(b, has_b);
  }
}

// A softmax as the loops read it.
struct LaneProbabilities {
  HWY_ALIGN float max[kGroup];
  HWY_ALIGN float factor[kGroup];  // 1/sum; 0 where nothing is seen

  explicit LaneProbabilities(const LaneSoftmax& softmax) {
    for (int i = 0; i < kGroup; ++i) {
      max[i] = softmax.max[i];
      factor[i] = softmax.sum[i] > 0 ? static_cast<float>(1 / softmax.sum[i]) : 0.0f;
    }
  }
  HWY_INLINE FloatVec log_ratio(const float* logits, int v) const {
    return hn::Sub(hn::LoadU(FloatTag(), logits + v * kLanes), hn::Load(FloatTag(), max + v * kLanes));
  }
  HWY_INLINE FloatVec of(FloatVec log_ratio, FloatMask visible, int v) const {
    const FloatTag d;
    const FloatVec e = power_of_two(hn::Mul(log_ratio, hn::Set(d, kLog2E)));
    return hn::IfThenElseZero(visible, hn::Mul(e, hn::Load(d, factor + v * kLanes)));
  }
};

// p [columns, kGroup] of all columns.
HWY_INLINE void probabilities_of(const GroupBlocks& of, const float* logits, const LaneProbabilities& softmax,
                                 float* p) {
  for (std::int64_t n = 0; n < of.count; ++n) {
    const KeyBlock& block = of.blocks[n];
    const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
    for (std::int64_t j = 0; j < block.keys; ++j, logits += kGroup, p += kGroup) {
      for (int v = 0; v < kGroupVectors; ++v) {
        const FloatVec own = softmax.of(softmax.log_ratio(logits, v), lanes_of(visible[j], v), v);
        hn::StoreU(own, FloatTag(), p + v * kLanes);
      }
    }
  }
}

// Twice the Jensen-Shannon divergence in nats, added lane by lane, over the columns of a key set (-1: both). With hi and
// lo the larger and smaller of p and q, y = (hi-lo)/(hi+lo) and D = ln(hi/lo), a pair's part is
// (hi+lo) ln(1+y) - lo D: one short logarithm, and exactly 0 for equal probabilities.
struct Compared {
  const float* logits;  // [columns, kGroup]
  const LaneSoftmax* softmax;
};
HWY_INLINE void add_divergence(const GroupBlocks& of, int set, Compared a, Compared b, double* twice) {
  const FloatTag d;
  const LaneProbabilities pa(*a.softmax), pb(*b.softmax);
  HWY_ALIGN float ratio[kGroup];  // ln(Z_a/Z_b)
  for (int i = 0; i < kGroup; ++i) {
    const double za = a.softmax->sum[i], zb = b.softmax->sum[i];
    ratio[i] = za > 0 && zb > 0 ? static_cast<float>(std::log(za / zb)) : 0.0f;
  }
  for (std::int64_t n = 0; n < of.count;
       a.logits += of.blocks[n].keys * kGroup, b.logits += of.blocks[n].keys * kGroup, ++n) {
    const KeyBlock& block = of.blocks[n];
    if (set >= 0 && block.set != set) continue;
    const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
    FloatVec sum[kGroupVectors];
    clear(sum);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      for (int v = 0; v < kGroupVectors; ++v) {
        const FloatMask mask = lanes_of(visible[j], v);
        const FloatVec la = pa.log_ratio(a.logits + j * kGroup, v), lb = pb.log_ratio(b.logits + j * kGroup, v);
        const FloatVec p = pa.of(la, mask, v), q = pb.of(lb, mask, v);
        const FloatVec hi = hn::Max(p, q), lo = hn::Min(p, q), both = hn::Add(p, q);
        const FloatVec distance = hn::Abs(hn::Sub(hn::Sub(la, lb), hn::Load(d, ratio + v * kLanes)));
        const FloatMask some = hn::Gt(both, hn::Zero(d));
        const FloatVec y = hn::Div(hn::Sub(hi, lo), hn::IfThenElse(some, both, hn::Set(d, 1.0f)));
        const FloatVec away = hn::IfThenElseZero(hn::Gt(lo, hn::Zero(d)), hn::Mul(lo, distance));
        sum[v] = hn::Add(sum[v], hn::Sub(hn::Mul(both, log_of_one_plus(y)), away));
      }
    }
    add_lanes(sum, twice);
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
