// The results as numbers: analysis.h5, CSV tables and summary.json.
#pragma once

#include <filesystem>
#include <span>

#include "etc_core/base/json_fwd.h"
#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

// analysis.h5: arrays of floats [layers, heads, groups, …]
//   PATH/{count,mean,var,least,largest,skipped,quantiles [.., 5],histogram [.., 512]}
//                                                     PATH: h5_path of every quantity that has values
//   [etc/]label_mass/TYPE [.., R], distance_mass/TYPE [.., 2*reach+1]: means over queries (of a distance: over those that
//                                                     have it inside the sequence)
//   jsd_of_heads/OPERATOR/{mean,median} [layers, heads, heads of the layer before], with all heads compared
//   tables/NAME [R, heads]: norms of relative vectors, biases in logit units
//   first_layer/PART [R, heads, D]: the relative tables its attention reads, whatever the method
//   first_layer/tokens [n, n]: mean probability over heads of the first tokens of an example
//   gradients/{query_key,rest} [layers], where asked for
void write_h5(const ModelAnalysis& model, const std::filesystem::path& path);

// Where a quantity lies: "entropy", with several operators "entropy/long"; of one type "etc/mass/l2g".
std::string h5_path(const ModelAnalysis& model, const OperatorResults& results, Quantity quantity);

// statistics.csv, label_mass.csv, distance_mass.csv, best_match.csv (with all heads compared), relative_tables.csv (of the
// first layer), gradient_norms.csv (where asked for), in the folder.
void write_csv(const ModelAnalysis& model, const std::filesystem::path& folder);

// Medians, variances and what the figures' statements are checked by (analysis 4), one object per model.
Json summary_of(std::span<const ModelAnalysis> models);

// The mean over heads of a quantity's quantile, or of its variance or mean, in a layer; nan without values.
double over_heads(const OperatorResults& results, Quantity quantity, std::int64_t layer,
                  double (*of)(const Distribution& cell));
double median_of(const Distribution& cell);
double mean_of(const Distribution& cell);
double variance_of(const Distribution& cell);
double maximum_of(const Distribution& cell);

}  // namespace etc::analyze
