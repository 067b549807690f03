// Writes the numerical results: analysis.h5, CSV tables and summary.json.
#pragma once

#include <filesystem>
#include <span>

#include "etc_core/base/json_fwd.h"
#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

// analysis.h5: arrays of floats [layers, heads, groups, …]; counts and histograms are int64
//   PATH/{count,mean,var,least,largest,skipped,quantiles [.., 5],histogram [.., 512]}
//                                                     PATH: h5_path of every quantity that has values
//   PATH/histogram_end [1]: the equal bins go from 0 to it; of entropies the log of a bound of the keys a query sees
//   [etc/]label_mass/TYPE [.., R], distance_mass/TYPE [.., 2*reach+1]: means over queries (for a distance, over the queries
//                                                     that have it inside the sequence)
//   jsd_of_heads/OPERATOR/{mean,median} [layers, heads, heads of the layer before], if all heads are compared
//   tables/NAME [R, heads or 1]: table_norms_of: norms of relative vectors, biases in logit units, factors
//   first_layer/PART [R, heads, D]: the relative tables that its attention reads, for every position method
//   first_layer/tokens [n, n]: probabilities between the first tokens of an example, mean over heads
//   gradients/{query_key,rest} [layers], if requested
void write_h5(const ModelAnalysis& model, const std::filesystem::path& path);

// The path of a quantity: "entropy", with several operators "entropy/long"; for one attention type "etc/mass/l2g".
std::string h5_path(const ModelAnalysis& model, const OperatorResults& results, Quantity quantity);

// Writes to the folder: statistics.csv, label_mass.csv, distance_mass.csv, best_match.csv (if all heads are compared),
// relative_tables.csv (first layer), gradient_norms.csv (if requested).
void write_csv(const ModelAnalysis& model, const std::filesystem::path& folder);

// Medians, variances and the numbers for checking the papers' statements about figures (analysis 4), one object per model.
Json summary_of(std::span<const ModelAnalysis> models);

// What a reader of a model's results should know: groups without queries, a single layer.
std::vector<std::string> notes_of(const ModelAnalysis& model);

// The mean over heads of a quantity's quantile, variance or mean in a layer; nan without values.
double over_heads(const OperatorResults& results, Quantity quantity, std::int64_t layer,
                  double (*of)(const Distribution& cell));
double median_of(const Distribution& cell);
double mean_of(const Distribution& cell);
double variance_of(const Distribution& cell);
double maximum_of(const Distribution& cell);

}  // namespace etc::analyze
