// From a group's logits and probabilities to what attention_statistics gives of its queries, and to the sums of its task.
// Highway's per-target include guard.
#if defined(SPARSE_CPU_STATISTICS_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARSE_CPU_STATISTICS_GROUP_INL_H_
#undef SPARSE_CPU_STATISTICS_GROUP_INL_H_
#else
#define SPARSE_CPU_STATISTICS_GROUP_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "sparse/cpu/statistics-inl.h"
#include "sparse/cpu/statistics_call.h"
#include "sparse/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One thread's working memory.
struct StatisticsScratch {
  TaskScratch own;
  std::optional<TaskScratch> shifted, before;
  float *used = nullptr, *previous = nullptr, *p = nullptr;  // [columns, kGroup]
  float* label_sums[kKeySets] = {nullptr, nullptr};          // [labels in whole steps, kGroup]

  StatisticsScratch(Arena& arena, const StatisticsCall& call, const TaskSizes& sizes)
      : own(arena, call.own, sizes, Pass::forward) {
    if (call.needs_shifted()) shifted.emplace(arena, call.own, sizes, Pass::forward);
    if (call.needs_before()) before.emplace(arena, call.before, sizes, Pass::forward);
    for (float** array : {&used, &previous, &p}) *array = arena.take<float>(sizes.columns * kGroup);
    for (int t = 0; t < kKeySets; ++t) {
      if (call.args.label_mass[t] != nullptr) label_sums[t] = arena.take<float>(padded_rows(call.slot.labels) * kGroup);
    }
  }

  void load(const StatisticsCall& call, std::int64_t number) {
    load_task(call.own, call.task(number, 0), own);
    if (shifted) load_task(call.own, call.task(number, call.args.head_shift), *shifted);
    if (before) load_task(call.before, call.task(number, call.args.head_shift), *before);
  }
};

// |C| over visible pairs.
struct CarrySums {
  Lanes pairs = {}, magnitude = {};
  HWY_ALIGN float largest[kGroup] = {};
};

// A group's softmaxes of one kind of logits: within each key set and over both.
struct GroupSoftmaxes {
  LaneSoftmax sets[kKeySets], whole;

  template <bool kMoments>
  void take(const GroupBlocks& of, const float* logits) {
    for (int t = 0; t < kKeySets; ++t) {
      largest_logits(of, t, logits, sets[t]);
      softmax_sums<kMoments>(of, t, logits, sets[t]);
    }
    join(sets[0], sets[1], whole);
  }
};

// All that a group's results are made of.
struct GroupSums {
  GroupSoftmaxes used, previous;
  CarrySums carry;
  HWY_ALIGN float mean[kGroup] = {};  // of the visible logits
  Lanes squares = {}, distance = {}, twice_jsd = {}, twice_jsd_of[kKeySets] = {}, twice_own_jsd = {};
};

inline void take_deviations(const GroupBlocks& of, const float* logits, GroupSums& sums) {
  for (int i = 0; i < kGroup; ++i) {
    double total = 0, visible = 0;
    for (const LaneSoftmax& set : sums.used.sets) {
      total += set.logits[i] + set.visible[i] * static_cast<double>(set.max[i]);
      visible += set.visible[i];
    }
    sums.mean[i] = visible > 0 ? static_cast<float>(total / visible) : 0.0f;
  }
  add_squares(of, logits, sums.mean, sums.squares);
}

inline void take_divergences(const StatisticsCall& call, const GroupBlocks& of, const StatisticsScratch& scratch,
                             GroupSums& sums) {
  sums.previous.take<false>(of, scratch.previous);
  add_divergence(of, -1, {scratch.used, &sums.used.whole}, {scratch.previous, &sums.previous.whole}, sums.twice_jsd);
  for (int t = 0; t < kKeySets && call.tiles(1).columns > 0; ++t) {
    add_divergence(of, t, {scratch.used, &sums.used.sets[t]}, {scratch.previous, &sums.previous.sets[t]},
                   sums.twice_jsd_of[t]);
  }
  if (!call.carries || !scratch.before || call.args.head_shift != 0) return;
  GroupSoftmaxes own, own_before;
  own.take<false>(of, scratch.own.group.p);
  own_before.take<false>(of, scratch.before->group.p);
  add_divergence(of, -1, {scratch.own.group.p, &own.whole}, {scratch.before->group.p, &own_before.whole},
                 sums.twice_own_jsd);
}

inline double bits_of(double twice) {
  return std::isnan(twice) ? twice : std::clamp(twice / 2 / std::log(2.0), 0.0, 1.0);
}

// The numbers of one query.
inline void write_query(const StatisticsCall& call, const GroupSums& sums, const StatisticsScratch& scratch, int i,
                        double* out) {
  const auto put = [out](QueryStatistic which, double value) { out[static_cast<int>(which)] = value; };
  const auto put_of = [out](QueryStatistic first, int t, double value) { out[static_cast<int>(first) + t] = value; };
  std::fill_n(out, kQueryStatistics, std::numeric_limits<double>::quiet_NaN());
  const LaneSoftmax(&sets)[kKeySets] = sums.used.sets;
  const LaneSoftmax& whole = sums.used.whole;
  const double visible = sets[0].visible[i] + sets[1].visible[i];
  put(QueryStatistic::visible, visible);
  if (visible == 0 || std::isnan(whole.sum[i])) return;
  double entropy = 0, masses[kKeySets];
  for (int t = 0; t < kKeySets; ++t) {
    const double away = static_cast<double>(sets[t].max[i]) - static_cast<double>(whole.max[i]);
    const double mass = sets[t].sum[i] > 0 ? std::exp(away) * sets[t].sum[i] / whole.sum[i] : 0;
    masses[t] = mass;
    put_of(QueryStatistic::mass_0, t, mass);
    if (mass == 0) continue;
    const double own = std::max(0.0, std::log(sets[t].sum[i]) - sets[t].moment[i] / sets[t].sum[i]);
    if (mass >= kLeastMass) put_of(QueryStatistic::entropy_0, t, own);
    entropy += mass * (own - std::log(mass));
  }
  put(QueryStatistic::entropy, std::max(0.0, entropy));
  put(QueryStatistic::largest, 1 / whole.sum[i]);
  put(QueryStatistic::distance_0, sums.distance[i]);
  put(QueryStatistic::logit_stddev, std::sqrt(sums.squares[i] / visible));
  if (call.args.member_label >= 0 && scratch.label_sums[1] != nullptr) {
    put(QueryStatistic::member_1, static_cast<double>(scratch.label_sums[1][call.args.member_label * kGroup + i]));
  }
  if (sums.carry.pairs[i] > 0) {
    put(QueryStatistic::carry_mean, sums.carry.magnitude[i] / sums.carry.pairs[i]);
    put(QueryStatistic::carry_largest, static_cast<double>(sums.carry.largest[i]));
  }
  if (!call.compares()) return;
  put(QueryStatistic::jsd, bits_of(sums.twice_jsd[i]));
  for (int t = 0; t < kKeySets && call.tiles(1).columns > 0; ++t) {
    const LaneSoftmax &before = sums.previous.sets[t], &all = sums.previous.whole;
    const double away = static_cast<double>(before.max[i]) - static_cast<double>(all.max[i]);
    const double mass = before.sum[i] > 0 ? std::exp(away) * before.sum[i] / all.sum[i] : 0;
    if (mass >= kLeastMass && masses[t] >= kLeastMass)
      put_of(QueryStatistic::jsd_0, t, bits_of(sums.twice_jsd_of[t][i]));
  }
  if (call.carries && scratch.before && call.args.head_shift == 0) {
    put(QueryStatistic::own_jsd, bits_of(sums.twice_own_jsd[i]));
  }
}

// Bits of the group's queries that belong to query group g.
inline std::uint16_t members_of(const AttentionStatistics& args, const QueryGroup& group, int g) {
  unsigned members = 0;
  for (std::int64_t i = 0; i < group.queries; ++i) {
    const bool is = args.query_groups == nullptr ? g == 0 : (args.query_groups[group.row + i] >> g & 1) != 0;
    members |= is ? 1u << i : 0u;
  }
  return static_cast<std::uint16_t>(members);
}

// Leaves the group's sums by label in scratch.label_sums and adds them to the slot.   slot [groups, R] of each set
inline void take_labels(const StatisticsCall& call, const QueryGroup& group, const GroupBlocks& of,
                        StatisticsScratch& scratch, double* slot) {
  const FloatTag d;
  const std::int64_t labels = call.slot.labels;
  for (int t = 0; t < kKeySets; ++t) {
    float* const sums = scratch.label_sums[t];
    if (sums == nullptr) continue;
    std::fill_n(sums, padded_rows(labels) * kGroup, 0.0f);
    const float* p = scratch.p;
    for (std::int64_t n = 0; n < of.count; p += of.blocks[n].keys * kGroup, ++n) {
      const KeyBlock& block = of.blocks[n];
      if (block.set != t || !block.tiles->labelled()) continue;
      if (block.tiles->distance.used()) {
        add_by_label(labels_by_distance(block), block.keys, p, sums);
      } else {
        add_by_label(listed_labels(block), block.keys, p, sums);
      }
    }
    for (int g = 0; g < call.args.groups; ++g) {
      const std::uint16_t members = members_of(call.args, group, g);
      if (members == 0) continue;
      double* const to = slot + call.slot.of_labels[t] + g * labels;
      for (std::int64_t r = 0; r < labels; ++r) {
        FloatVec sum = hn::Zero(d);
        for (int v = 0; v < kGroupVectors; ++v) {
          const FloatVec own = hn::LoadU(d, sums + r * kGroup + v * kLanes);
          sum = hn::Add(sum, hn::IfThenElseZero(lanes_of(members, v), own));
        }
        to[r] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
      }
    }
  }
}

// sums[j + kGroup - 1 - i] = sum of p[j][i] over the pairs of one distance, of the members alone.   p [keys, kGroup],
// sums [keys + kGroup]
inline void sum_diagonals(const float* p, std::int64_t keys, std::uint16_t members, float* sums) {
  const FloatTag d;
  std::fill_n(sums, keys + kGroup, 0.0f);
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < kGroupVectors; ++v) {
      const FloatVec own = hn::IfThenElseZero(lanes_of(members, v), hn::LoadU(d, p + j * kGroup + v * kLanes));
      float* const place = sums + j + kGroup - (v + 1) * kLanes;  // [kLanes]
      hn::StoreU(hn::Add(hn::LoadU(d, place), hn::Reverse(d, own)), d, place);
    }
  }
}

// Probabilities of key set 0 by distance, to the slot. own_key: the key where the group's first query stands.
inline void take_distances(const StatisticsCall& call, const QueryGroup& group, std::int64_t own_key,
                           const GroupBlocks& of, const float* p, double* slot) {
  const std::int64_t reach = call.args.reach;
  for (int g = 0; g < call.args.groups; ++g) {
    const std::uint16_t members = members_of(call.args, group, g);
    if (members == 0) continue;
    double* const to = slot + call.slot.of_distances + g * call.slot.distances;
    const float* own = p;
    for (std::int64_t n = 0; n < of.count; own += of.blocks[n].keys * kGroup, ++n) {
      const KeyBlock& block = of.blocks[n];
      if (block.set != 0) continue;
      float sums[kStatisticsKeys + kGroup];
      sum_diagonals(own, block.keys, members, sums);
      const std::int64_t first = block.panel->first_key() + block.row - own_key + reach - (kGroup - 1);
      for (std::int64_t k = 0; k < block.keys + kGroup - 1; ++k) {
        if (first + k >= 0 && first + k <= 2 * reach) to[first + k] += static_cast<double>(sums[k]);
      }
    }
  }
}

// The largest p of each query, in order; of equal ones the first.
inline void take_top(const StatisticsCall& call, const QueryGroup& group, const GroupBlocks& of,
                     const StatisticsScratch& scratch, TopKey* top) {
  const std::int64_t kept = call.args.top;
  for (std::int64_t i = 0; i < group.queries; ++i) {
    TopKey* const own = top + (group.row + i) * kept;  // [top]
    std::fill_n(own, kept, TopKey());
    std::int64_t at = i;
    for (std::int64_t n = 0; n < of.count; ++n) {
      const KeyBlock& block = of.blocks[n];
      const std::uint16_t* const visible = block.tiles->visible.data() + block.column;  // [keys]
      for (std::int64_t j = 0; j < block.keys; ++j, at += kGroup) {
        const float p = scratch.p[at];
        if ((visible[j] >> i & 1) == 0 || (own[kept - 1].key >= 0 && p <= own[kept - 1].probability)) continue;
        std::int64_t place = kept - 1;
        for (; place > 0 && (own[place - 1].key < 0 || own[place - 1].probability < p); --place) {
          own[place] = own[place - 1];
        }
        own[place] = {static_cast<std::int32_t>(block.panel->first_key() + block.row + j), block.set, p,
                      scratch.own.group.p[at], scratch.used[at]};
      }
    }
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
