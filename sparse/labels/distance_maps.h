// Maps from distance to table row of published methods, for label_by_distance. A distance is key position minus query
// position: positive to the right.
#pragma once

#include <cstdint>

#include "sparse/distance_labels.h"

namespace etc::sparse {

// clip(distance, k) + k: rows 0 … 2k. Shaw et al. (2018), Huang et al. (2020) methods 2 to 4, NEZHA. With k = n-1
// nothing is clipped in sequences of at most n tokens. Throws Error when k < 0 or when there are more than kMostLabels
// rows.
DistanceMap clipped_distances(std::int64_t k);

// min(|distance|, k): rows 0 … k. Huang et al., method 1, with k = n-1. Throws the same Errors.
DistanceMap undirected_distances(std::int64_t k);

// The ids of relative_ids.h: 0, then 1 … k to the right, k+1 … 2k to the left. Throws the same Errors.
DistanceMap etc_distances(std::int64_t k);

// Row m - least for m = query - key, clipped to least … most. For Transformer-XL and XLNet, whose r_m is indexed by the
// distance from key to query. With a causal memory of M keys and n queries: least = 0, most = M+n-1. Throws Error when
// most < least or when there are more than kMostLabels rows.
DistanceMap reversed_distances(std::int64_t least, std::int64_t most);

struct T5Buckets {
  std::int64_t buckets = 32;        // num_buckets: rows of the table
  std::int64_t max_distance = 128;  // from this distance on all share the last bucket
  bool bidirectional = true;        // false: keys to the right, which are masked, share bucket 0
};

// The bucket of a distance (relative-positions 5; Raffel et al., 2020): one bucket per small distance, logarithmic
// buckets beyond. Throws Error naming num_buckets or max_distance when their values are invalid.
std::int64_t t5_bucket(const T5Buckets& settings, std::int64_t distance);
DistanceMap t5_distances(const T5Buckets& settings);

}  // namespace etc::sparse
