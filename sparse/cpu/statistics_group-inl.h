// From a group's logits and probabilities to the results of attention_statistics for its queries and to its task's
// sums. Highway's per-target include guard.
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
  float *used = nullptr, *previous = nullptr;                       // [columns, kGroup]: logits
  float *powers = nullptr, *powers_before = nullptr, *p = nullptr;  // [columns, kGroup]
  float* label_sums[kKeySets] = {nullptr, nullptr};                 // [labels in whole steps, kGroup] of a group
  // Sums over the groups of a task for the members of each query group, kept per lane.
  float* task_labels[kKeySets] = {nullptr, nullptr};  // [groups, labels, kGroup]
  float* task_distances = nullptr;                    // [groups, 2*reach + kGroup, kGroup], by key - first query
  float* greatest = nullptr;                          // [top, kGroup]

  StatisticsScratch(Arena& arena, const StatisticsCall& call, const TaskSizes& sizes)
      : own(arena, call.own, sizes, Pass::forward) {
    if (call.needs_shifted()) shifted.emplace(arena, call.own, sizes, Pass::forward);
    if (call.needs_before()) before.emplace(arena, call.before, sizes, Pass::forward);
    for (float** array : {&used, &previous, &powers, &powers_before, &p}) {
      *array = arena.take<float>(sizes.columns * kGroup);
    }
    for (int t = 0; t < kKeySets; ++t) {
      if (call.args.label_mass[t] == nullptr) continue;
      label_sums[t] = arena.take<float>(padded_rows(call.slot.labels) * kGroup);
      task_labels[t] = arena.take<float>(call.args.groups * call.slot.labels * kGroup);
    }
    if (call.args.distance_mass != nullptr) {
      task_distances = arena.take<float>(call.args.groups * call.distance_rows() * kGroup);
    }
    if (call.args.top_keys != nullptr) greatest = arena.take<float>(call.args.top * kGroup);
  }

  void load(const StatisticsCall& call, std::int64_t number) {
    load_task(call.own, call.task(number, 0), own);
    if (shifted) load_task(call.own, call.task(number, call.args.head_shift), *shifted);
    if (before) load_task(call.before, call.task(number, call.args.head_shift), *before);
    for (float* rows : task_labels) {
      if (rows != nullptr) std::fill_n(rows, call.args.groups * call.slot.labels * kGroup, 0.0f);
    }
    if (task_distances != nullptr) {
      std::fill_n(task_distances, call.args.groups * call.distance_rows() * kGroup, 0.0f);
    }
  }
};

// |C| over visible pairs.
struct CarrySums {
  Lanes pairs = {}, magnitude = {};
  HWY_ALIGN float largest[kGroup] = {};
};

// All sums from which a group's results are computed.
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

// Compares the softmaxes of this layer and of the layer before. Overwrites both arrays of powers.
inline void take_divergences(const StatisticsCall& call, const GroupBlocks& of, const StatisticsScratch& scratch,
                             GroupSums& sums) {
  sums.previous.take<false>(of, scratch.previous, scratch.powers_before);
  const Compared used{scratch.used, scratch.powers, &sums.used};
  const Compared previous{scratch.previous, scratch.powers_before, &sums.previous};
  if (call.tiles(1).columns > 0) {
    add_divergences<true>(of, used, previous, sums.twice_jsd, sums.twice_jsd_of);
  } else {
    add_divergences<false>(of, used, previous, sums.twice_jsd, nullptr);
  }
  if (!call.compares_own()) return;
  GroupSoftmaxes own, own_before;
  const float *const scores = scratch.own.group.p, *const scores_before = scratch.before->group.p;
  own.take<false>(of, scores, scratch.powers);
  own_before.take<false>(of, scores_before, scratch.powers_before);
  add_divergences<false>(of, {scores, scratch.powers, &own}, {scores_before, scratch.powers_before, &own_before},
                         sums.twice_own_jsd, nullptr);
}

inline double bits_of(double twice) {
  return std::isnan(twice) ? twice : std::clamp(twice / 2 / std::log(2.0), 0.0, 1.0);
}

// Writes the statistics of one query.
inline void write_query(const StatisticsCall& call, const GroupSums& sums, const StatisticsScratch& scratch, int i,
                        double* out) {
  const auto put = [out](QueryStatistic which, double value) { out[static_cast<int>(which)] = value; };
  const auto put_of = [out](QueryStatistic first, int t, double value) { out[static_cast<int>(first) + t] = value; };
  std::fill_n(out, kQueryStatistics, std::numeric_limits<double>::quiet_NaN());
  const LaneSoftmax(&sets)[kKeySets] = sums.used.sets;
  const GroupSoftmaxes& used = sums.used;
  const double visible = sets[0].visible[i] + sets[1].visible[i];
  put(QueryStatistic::visible, visible);
  if (visible == 0 || std::isnan(used.sum[i])) return;
  double entropy = 0;
  for (int t = 0; t < kKeySets; ++t) {
    const double mass = used.mass[t][i];
    put_of(QueryStatistic::mass_0, t, mass);
    if (mass == 0) continue;
    const double own = std::max(0.0, sets[t].log_sum[i] - sets[t].moment[i] / sets[t].sum[i]);
    if (mass >= kLeastMass) put_of(QueryStatistic::entropy_0, t, own);
    const double log_mass = static_cast<double>(sets[t].max[i]) - used.max[i] + sets[t].log_sum[i] - used.log_sum[i];
    entropy += mass * (own - log_mass);
  }
  put(QueryStatistic::entropy, std::max(0.0, entropy));
  put(QueryStatistic::largest, 1 / used.sum[i]);
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
    if (std::min(used.mass[t][i], sums.previous.mass[t][i]) < kLeastMass) continue;
    put_of(QueryStatistic::jsd_0, t, bits_of(sums.twice_jsd_of[t][i]));
  }
  if (call.compares_own()) put(QueryStatistic::own_jsd, bits_of(sums.twice_own_jsd[i]));
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

// to += from in the members' lanes.   from, to [count, kGroup]
HWY_INLINE void add_members(const float* from, std::int64_t count, std::uint16_t members, float* to) {
  const FloatTag d;
  for (int v = 0; v < kGroupVectors; ++v) {
    const FloatMask mask = lanes_of(members, v);
    for (std::int64_t at = v * kLanes; at < count * kGroup; at += kGroup) {
      const FloatVec own = hn::IfThenElseZero(mask, hn::LoadU(d, from + at));
      hn::StoreU(hn::Add(hn::LoadU(d, to + at), own), d, to + at);
    }
  }
}

// Computes the group's sums by label in scratch.label_sums, and adds them to the task's sums.
inline void take_labels(const StatisticsCall& call, const QueryGroup& group, const GroupBlocks& of,
                        StatisticsScratch& scratch) {
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
      if (members != 0) add_members(sums, labels, members, scratch.task_labels[t] + g * labels * kGroup);
    }
  }
}

// Adds the probabilities of key set 0 to the task's rows, indexed by the key's position relative to own_key, the
// position of the group's first query. Distances are then the same for all groups, and no sum across lanes is needed.
inline void take_distances(const StatisticsCall& call, const QueryGroup& group, std::int64_t own_key,
                           const GroupBlocks& of, StatisticsScratch& scratch) {
  const std::int64_t rows = call.distance_rows();
  for (int g = 0; g < call.args.groups; ++g) {
    const std::uint16_t members = members_of(call.args, group, g);
    if (members == 0) continue;
    float* const to = scratch.task_distances + g * rows * kGroup;
    const float* p = scratch.p;
    for (std::int64_t n = 0; n < of.count; p += of.blocks[n].keys * kGroup, ++n) {
      const KeyBlock& block = of.blocks[n];
      if (block.set != 0) continue;
      const std::int64_t row = block.panel->first_key() + block.row - own_key + call.args.reach;  // of the first key
      const std::int64_t begin = std::max<std::int64_t>(0, -row), end = std::min(block.keys, rows - row);
      if (begin < end) add_members(p + begin * kGroup, end - begin, members, to + (row + begin) * kGroup);
    }
  }
}

// Adds a task's rows to its slot, in double.
inline void finish_task(const StatisticsCall& call, const StatisticsScratch& scratch, double* slot) {
  const AttentionStatistics& args = call.args;
  const std::int64_t labels = call.slot.labels, distances = call.slot.distances;
  for (int t = 0; t < kKeySets; ++t) {
    if (args.label_mass[t] == nullptr) continue;
    for (std::int64_t n = 0; n < args.groups * labels; ++n) {
      double& to = slot[call.slot.of_labels[t] + n];
      for (int i = 0; i < kGroup; ++i) to += static_cast<double>(scratch.task_labels[t][n * kGroup + i]);
    }
  }
  for (std::int64_t n = 0; args.distance_mass != nullptr && n < args.groups * distances; ++n) {
    // Distance n - reach is that of row n + i and query i.
    const float* const rows = scratch.task_distances + n / distances * call.distance_rows() * kGroup;
    double& to = slot[call.slot.of_distances + n];
    for (int i = 0; i < kGroup; ++i) to += static_cast<double>(rows[(n % distances + i) * kGroup + i]);
  }
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
