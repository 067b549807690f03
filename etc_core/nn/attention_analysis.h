// The statistics of every layer's attention in one forward pass (sparse/attention_statistics.h), each layer compared with
// the one before. Two adjacent layers' queries and keys are alive at a time; probabilities never are.
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

// What is asked of one operator's queries.
struct QueryGroups {
  int groups = 1;
  std::vector<std::uint8_t> of_queries;  // [queries]: bit g is set in members of group g; empty: one group of all
};

struct AnalysisSettings {
  // Of the queries of this batch; null: one group of all.
  std::function<QueryGroups(const sparse::AttentionOperator*)> groups_of;
  std::int64_t member_label = -1;  // of key set 1 of operators of ETC (sparse/labels: member_id); -1: none
  std::int64_t reach = 0;          // distances -reach … reach have sums
  std::int64_t top = 0;            // keys kept of each query
  bool all_heads = false;          // each head is compared with all heads of the layer before
  // What may be left out: divergences from the layer before; sums by label, and with them member_1; sums by distance.
  bool divergences = true, label_mass = true, distance_mass = true;
};

struct LayerStatistics {
  const sparse::AttentionOperator* op = nullptr;
  std::int64_t layer = 0, heads = 0, queries = 0, labels = 0;
  int groups = 1;
  bool compared = false;                                         // with a layer before
  bool carries = false;                                          // scores, of some type
  std::vector<double> of_queries;                                // [N, queries, kQueryStatistics]
  std::array<std::vector<double>, sparse::kKeySets> label_mass;  // [N, groups, labels]; empty: none
  std::vector<double> distance_mass;                             // [N, groups, 2*reach+1] of key set 0
  std::vector<sparse::TopKey> top;                               // [N, queries, top]
  std::vector<double> jsd_of_heads;  // [N, N of the layer before, queries] in bits; empty: not asked for

  double at(std::int64_t head, std::int64_t query, sparse::QueryStatistic which) const {
    const std::int64_t place = (head * queries + query) * sparse::kQueryStatistics + static_cast<int>(which);
    return of_queries[static_cast<std::size_t>(place)];
  }
};

// Copies share nothing: give a reference to it to the encoder. A pass of one batch; layers come in order.
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
