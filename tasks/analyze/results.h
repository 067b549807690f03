// The results for a model's attention, accumulated over examples: per operator, layer, head and query group.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "etc_core/nn/attention_analysis.h"
#include "tasks/analyze/distribution.h"

namespace etc::analyze {

// The quantities of analysis 2, 3, 5 and 7, one value per token, layer and head. In a name, %0 or %1 stands for the attention
// type of key set 0 or 1 ("mass_l2g").
enum class Quantity : int {
  entropy,
  entropy_normalised,
  entropy_0,
  entropy_1,
  entropy_normalised_0,
  entropy_normalised_1,
  mass_0,
  mass_1,
  member_1,
  other_1,
  one_hot,
  distance_0,
  logit_stddev,
  carry_mean,
  carry_largest,
  jsd,
  jsd_0,
  jsd_1,
  own_jsd,
  jsd_distance,
};
inline constexpr int kQuantityCount = 20;

struct QuantityInfo {
  const char* name;
  const char* unit;
  const char* what;
  enum class Range { log_keys, one, open } range;
};
const QuantityInfo& info_of(Quantity quantity);

// The operator in files and pictures: "long" for long_attention.
std::string short_name(const sparse::AttentionOperator& op);

// The queries of one operator in a batch.
struct BatchQueries {
  const std::vector<std::int64_t>& offsets;      // [B+1]
  const std::vector<std::uint8_t>& bits;         // [queries] bits of their groups
  const std::vector<std::int64_t>& numbers;      // [B] indices of the examples in their data, for messages
  std::span<const std::int32_t> visible_1 = {};  // [queries] keys of set 1 that each sees; not read if there are none
};

struct ResultOptions {
  std::int64_t reach = 0;     // sums by distance -reach … reach
  double most_keys = 2;       // that a query may see: the upper end of the entropies' bins
  bool exact = false;         // distributions keep values (distribution.h)
  bool jsd_distance = false;  // also Quantity::jsd_distance
  bool label_mass = true;     // sums by label, where there are labels
};

struct OperatorResults {
  std::string name;                  // "self", "long" or "global"
  std::array<std::string, 2> types;  // attention types of its key sets; "": no keys
  std::int64_t layers = 0, heads = 0, labels = 0, reach = 0;
  int groups = 0;
  bool carries = false;
  std::int64_t queries = 0, unseen = 0;  // number of tokens, and of tokens without a visible key

  std::vector<Distribution> cells;                // [quantities, layers, heads, groups]
  std::vector<Distribution> heads_compared;       // [layers, heads, heads of the layer before]; empty: not requested
  std::array<std::vector<double>, 2> label_mass;  // sums [layers, heads, groups, labels]; empty: none
  std::vector<double> distance_mass;              // sums [layers, heads, groups, 2*reach+1]
  std::vector<std::int64_t> distance_queries;     // queries that have the distance: [groups, 2*reach+1]
  std::vector<std::int64_t> group_queries;        // [groups]

  OperatorResults(const LayerStatistics& first, std::int64_t layers, const ResultOptions& options);

  std::size_t cell_index(Quantity quantity, std::int64_t layer, std::int64_t head, int group) const;
  const Distribution& cell(Quantity quantity, std::int64_t layer, std::int64_t head, int group = 0) const {
    return cells[cell_index(quantity, layer, head, group)];
  }
  const Distribution& compared(std::int64_t layer, std::int64_t head, std::int64_t before) const {
    return heads_compared[static_cast<std::size_t>((layer * heads + head) * heads + before)];
  }
  // The head of the layer before with the smallest mean divergence from this head.
  std::int64_t best_match(std::int64_t layer, std::int64_t head) const;
  // "mass_l2g"; "" for a quantity of a key set without keys.
  std::string name_of(Quantity quantity) const;
  bool has(Quantity quantity) const;  // whether it has any value
  // Whether values are kept: with a single attention type, its mass is 1 and its entropy equals the total.
  bool takes(Quantity quantity) const;

  // Adds one layer of a batch. Throws Error naming layer, head and example if probabilities are nan.
  void add(const LayerStatistics& of, const BatchQueries& from);
  // Adds the queries; called once per batch.
  void add_queries(const BatchQueries& from);

 private:
  void add_query(const LayerStatistics& of, const BatchQueries& from, std::int64_t head, std::int64_t i);

  bool jsd_distance_ = false;
};

// A head's order within its layer: by median entropy.
std::vector<std::int64_t> by_median_entropy(const OperatorResults& results, std::int64_t layer);

}  // namespace etc::analyze
