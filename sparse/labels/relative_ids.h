// Relative ids: the small numbers that select a learned vector for a query/key pair (etc-core 4).
//
// Ids of distances come first, R = 2k+1 of them for maximum distance k. Three more ids mark membership of long in global
// tokens and different paragraphs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace etc::sparse {

// Ids of distances (etc-core 4.1): the reference's position vocabulary.
constexpr std::int64_t distance_id_count(std::int64_t max_distance) {
  return 2 * max_distance + 1;
}

// Ids beyond the directed distances (etc-core 4.2), as functions of k.
constexpr std::int64_t not_member_id(std::int64_t max_distance) {
  return distance_id_count(max_distance);  // l2g, g2l: the long token does not belong to the global token
}
constexpr std::int64_t member_id(std::int64_t max_distance) {
  return distance_id_count(max_distance) + 1;  // l2g, g2l: it does
}
constexpr std::int64_t other_paragraph_id(std::int64_t max_distance) {
  return distance_id_count(max_distance) + 2;  // g2g: two global tokens of different paragraphs
}

// Id of distance = key position - query position, clipped to -k … k: 0, then 1 … k to the right, then k+1 … 2k to the
// left. max_distance >= 0. (Without direction: undirected_distances() of distance_maps.h.)
constexpr std::int64_t relative_id(std::int64_t distance, std::int64_t max_distance) {
  const std::int64_t clipped = std::min(distance < 0 ? -distance : distance, max_distance);
  return distance < 0 && clipped > 0 ? max_distance + clipped : clipped;
}

// Ids of `count` consecutive distances: out[i] = relative_id(first_distance + i).
template <typename Id>
void write_distance_ids(std::int64_t first_distance, std::int64_t count, std::int64_t max_distance, Id* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Id>(relative_id(first_distance + i, max_distance));
}

}  // namespace etc::sparse
