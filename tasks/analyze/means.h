// Means of the accumulated sums and distributions, as files and plots show them.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/analyze/results.h"

namespace etc::analyze {

// All quantities, in the order of their enumeration.
std::vector<Quantity> quantities();

// The mean over heads of a quantity's quantile, variance or mean in a layer; nan without values.
double over_heads(const OperatorResults& results, Quantity quantity, std::int64_t layer,
                  double (*of)(const Distribution& cell));
double median_of(const Distribution& cell);
double mean_of(const Distribution& cell);
double variance_of(const Distribution& cell);
double maximum_of(const Distribution& cell);

// Mean probability per query of the labels of key set t: [layers, heads, groups, labels]; nan for a group without queries.
std::vector<float> label_means(const OperatorResults& results, std::size_t t);

// Mean probability at the distances -reach … reach: [layers, heads, groups, 2*reach+1], over the queries that have the
// distance inside their sequence; nan where none has.
std::vector<float> distance_means(const OperatorResults& results);

}  // namespace etc::analyze
