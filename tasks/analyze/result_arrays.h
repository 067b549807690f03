// The numerical results as arrays: analysis.h5.
#pragma once

#include <filesystem>
#include <string>

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

}  // namespace etc::analyze
