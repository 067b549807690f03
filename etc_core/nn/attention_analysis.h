// The statistics of every layer's attention in one forward pass (sparse/attention_statistics.h), each layer compared
// with the previous one. Only the queries and keys of two adjacent layers are kept at a time; probabilities are never
// stored.
//
//   AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) { … });
//   options.attention_watch = std::ref(analysis);
//   encoder.forward(tape, input, options);
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "sparse/attention_statistics.h"

namespace etc {

// The groups of one operator's queries.
struct QueryGroups {
  int groups = 1;
  std::vector<std::uint8_t> of_queries;  // [queries]: bit g is set in members of group g; empty: one group of all
};

struct AnalysisSettings {
  // Groups of the queries of this batch; null: one group of all.
  std::function<QueryGroups(const sparse::AttentionOperator*)> groups_of;
  std::int64_t member_label = -1;  // label in key set 1 of ETC's operators (sparse/labels: member_id); -1: none
  std::int64_t reach = 0;          // attention mass is summed for distances -reach … reach
  std::int64_t top = 0;            // largest keys kept per query
  bool all_heads = false;          // compare each head with all heads of the previous layer
  // Optional statistics: divergences from the previous layer; sums by label, which include member_1; sums by distance.
  bool divergences = true, label_mass = true, distance_mass = true;
};

struct LayerStatistics {
  const sparse::AttentionOperator* op = nullptr;
  std::int64_t layer = 0, heads = 0, queries = 0, labels = 0;
  int groups = 1;
  bool compared = false;                                         // whether there was a previous layer
  bool carries = false;                                          // whether some type carries scores
  std::vector<double> of_queries;                                // [N, queries, kQueryStatistics]
  std::array<std::vector<double>, sparse::kKeySets> label_mass;  // [N, groups, labels]; empty: none
  std::vector<double> distance_mass;                             // [N, groups, 2*reach+1] of key set 0
  std::vector<sparse::TopKey> top;                               // [N, queries, top]
  std::vector<double> jsd_of_heads;  // [N, N of the previous layer, queries] in bits; empty if not requested

  double at(std::int64_t head, std::int64_t query, sparse::QueryStatistic which) const {
    const std::int64_t place = (head * queries + query) * sparse::kQueryStatistics + static_cast<int>(which);
    return of_queries[static_cast<std::size_t>(place)];
  }
};

// Used for one pass of one batch, with layers in order. Copies share no state, so pass the encoder a reference
// (std::ref).
class AttentionAnalysis {
 public:
  using Sink = std::function<void(const LayerStatistics&)>;
  AttentionAnalysis(AnalysisSettings settings, Sink sink) : settings_(std::move(settings)), sink_(std::move(sink)) {}

  void operator()(const WatchedAttention& watched);

 private:
  sparse::AttentionStatistics arguments(const WatchedAttention& watched, LayerStatistics& result);
  void compare_all_heads(sparse::AttentionStatistics args, LayerStatistics& result) const;

  AnalysisSettings settings_;
  Sink sink_;
  std::map<const sparse::AttentionOperator*, WatchedAttention> before_;
  std::map<const sparse::AttentionOperator*, QueryGroups> groups_;
};

}  // namespace etc
