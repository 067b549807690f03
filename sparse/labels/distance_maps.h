// Which rows of their relative tables published methods give to which distances, for label_by_distance. A distance is
// the key's position less the query's: positive to the right.
#pragma once

#include <cstdint>

#include "sparse/distance_labels.h"

namespace etc::sparse {

// clip(distance, k) + k: rows 0 … 2k. Shaw et al. (2018), Huang et al. (2020) methods 2 to 4, NEZHA. With k = n-1 for
// sequences of n at most nothing is clipped. Throws Error when k < 0 or there were more rows than a table may have.
DistanceMap clipped_distances(std::int64_t k);

// min(|distance|, k): rows 0 … k. Huang et al., method 1, with k = n-1. Throws Error likewise.
DistanceMap undirected_distances(std::int64_t k);

// The ids of relative_ids.h: 0, then 1 … k to the right, k+1 … 2k to the left. Throws Error likewise.
DistanceMap etc_distances(std::int64_t k);

// Row m - least for m = query - key, clipped to least … most: Transformer-XL and XLNet, whose r_m is by the distance from
// key to query. With a causal memory of M keys and n queries: least = 0, most = M+n-1. Throws Error when most < least.
DistanceMap reversed_distances(std::int64_t least, std::int64_t most);

struct T5Buckets {
  std::int64_t buckets = 32;        // num_buckets: rows of the table
  std::int64_t max_distance = 128;  // from here on all share the last bucket
  bool bidirectional = true;        // false: keys to the right, which nobody sees, share bucket 0
};

// The bucket of a distance (relative-positions 5; Raffel et al., 2020): exact near, then wider and wider. Throws Error
// naming num_buckets or max_distance when they make no buckets.
std::int64_t t5_bucket(const T5Buckets& settings, std::int64_t distance);
DistanceMap t5_distances(const T5Buckets& settings);

}  // namespace etc::sparse
