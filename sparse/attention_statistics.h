// Statistics of attention probabilities, computed without storing the probabilities: a pass over the tiles recomputes
// the logits of a layer and of the layer before, and reduces them query by query. For analysis only.
#pragma once

#include <cstdint>

#include "sparse/attention.h"

namespace etc::sparse {

// The numbers of one query and head. Entropies are in nats, divergences in bits. NaN: not defined for this query (no
// visible key, a type without mass, no layer before).
enum class QueryStatistic : int {
  visible,        // keys the query sees
  entropy,        // -sum p ln p over all of them
  mass_0,         // sum p over key set 0
  mass_1,         // and 1
  entropy_0,      // of p/mass_0 within key set 0; NaN where the mass is below kLeastMass
  entropy_1,      // and 1
  largest,        // max p
  member_1,       // sum p over the keys of set 1 whose label is member_label
  distance_0,     // sum |distance| p over key set 0
  logit_stddev,   // of the visible logits, population
  carry_mean,     // mean |C| over the visible pairs of types that carry
  carry_largest,  // max |C|
  jsd,            // Jensen-Shannon divergence between the whole softmax and that of the layer before
  jsd_0,          // the same with both renormalised within key set 0
  jsd_1,          // and 1
  own_jsd,        // between softmax(s) of both layers, without the scores carried from earlier layers
};
inline constexpr int kQueryStatistics = 16;
inline constexpr double kLeastMass = 1e-9;

// One of a query's keys.
struct TopKey {
  std::int32_t key = -1;  // counted from the example's first of its set; -1: fewer keys are visible
  std::int32_t set = 0;
  float probability = 0;
  float own = 0;    // s, this layer's score
  float logit = 0;  // what the softmax read: C times the mean's factor, or s
};

// Queries may belong to groups; sums by label and by distance are kept per group.
inline constexpr int kMostQueryGroups = 8;

struct AttentionStatistics {
  AttentionInputs inputs;  // fp32, without dropout
  // As left by the layer's forward: none, or C of this layer.
  std::array<TypeScores, kKeySets> scores;
  // q, k and tables of the layer before, on the same tiles; null: no layer before. v is not read.
  const AttentionInputs* before = nullptr;
  float logit_scale_before = 1.0f;  // c of the layer before, for types that carry scores
  // Head n is compared with head (n + head_shift) mod N of the layer before. Must be 0 where scores are carried.
  std::int64_t head_shift = 0;

  std::int64_t member_label = -1;              // of member_1; -1: none
  const std::uint8_t* query_groups = nullptr;  // [queries]: bit g: the query is in group g; null: one group of all
  int groups = 1;
  std::int64_t reach = 0;  // sums are kept for distances -reach … reach
  std::int64_t top = 0;    // keys listed per query

  double* of_queries = nullptr;                       // [N, queries, kQueryStatistics] =
  double* label_mass[kKeySets] = {nullptr, nullptr};  // [N, groups, R] +=; null where labels select nothing
  double* distance_mass = nullptr;                    // [N, groups, 2*reach+1] += of key set 0; null: not wanted
  TopKey* top_keys = nullptr;                         // [N, queries, top] =, the largest p first; null: not wanted
  void* scratch = nullptr;                            // attention_statistics_scratch_bytes, 64-byte aligned
};

// For every query i, over its visible keys j of both sets, with the logits l_ij of attention_forward and the logits
// l'_ij of the layer before (from C - s where scores are carried):
//   p = softmax(l), q = softmax(l')        m = max l, Z = sum e^(l-m), E = ln Z - sum (l-m) e^(l-m) / Z
//   jsd = 1/2 sum p ld(2p/(p+q)) + 1/2 sum q ld(2q/(p+q))
//   label_mass[t][n][g][r] += sum_{i in g} sum_{j: label = r} p_ij        distance_mass: the same by position j - i
// Rules: fp32 sums over 64 keys are added up in double; the same bits for any thread count and batch neighbours. If
//   logits are NaN, the entropy of a query with visible keys is NaN.
// Memory: scratch; per thread the keys of a task and the logits of 16 queries. Cost: about the forward's.
// Source: analysis 1 to 5, 7 (RealFormer, He et al. 2021, section 4.4).
void attention_statistics(Device device, const AttentionStatistics& args);

// Bytes of scratch of a call with the current thread count.
std::int64_t attention_statistics_scratch_bytes(Device device, const AttentionStatistics& args);

extern KernelSlot<void(const AttentionStatistics&)> attention_statistics_slot;
extern KernelSlot<std::int64_t(const AttentionStatistics&)> attention_statistics_scratch_slot;

}  // namespace etc::sparse
