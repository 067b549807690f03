// Relative ids: the small numbers that select a learned vector for a query/key pair (etc-core 4).
//
// Ids of distances come first, R = 2k+1 of them for maximum distance k (k+1 when direction is ignored). Three more ids
// mark membership of long in global tokens and different paragraphs. All functions here are pure functions of one
// sequence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace etc::sparse {

enum class Direction { counts, ignored };

// Ids of distances (etc-core 4.1): the reference's position vocabulary.
constexpr std::int64_t distance_id_count(std::int64_t max_distance, Direction direction = Direction::counts) {
  return direction == Direction::counts ? 2 * max_distance + 1 : max_distance + 1;
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
// left. With direction ignored: min(|distance|, k). max_distance >= 0.
constexpr std::int64_t relative_id(std::int64_t distance, std::int64_t max_distance,
                                   Direction direction = Direction::counts) {
  const std::int64_t clipped = std::min(distance < 0 ? -distance : distance, max_distance);
  return distance < 0 && direction == Direction::counts && clipped > 0 ? max_distance + clipped : clipped;
}

// Ids of `count` consecutive distances: out[i] = relative_id(first_distance + i).
template <typename Id>
void write_distance_ids(std::int64_t first_distance, std::int64_t count, std::int64_t max_distance, Direction direction,
                        Id* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<Id>(relative_id(first_distance + i, max_distance, direction));
  }
}

// [n, n]: entry [query, key] = relative_id(key - query). Throws Error when n < 1 or max_distance < 0.
std::vector<std::int32_t> full_relative_ids(std::int64_t n, std::int64_t max_distance,
                                            Direction direction = Direction::counts);

// [n, 2*radius+1], all rows equal: column w = relative_id(w - radius), also beyond the ends of the sequence.
// Throws Error when n < 1, radius < 1 or max_distance < 0.
std::vector<std::int32_t> local_relative_ids(std::int64_t n, std::int64_t radius, std::int64_t max_distance,
                                             Direction direction = Direction::counts);

// ids [n, n] with `value` wherever the two positions' segment_ids [n] differ; segments need not be contiguous.
// Throws Error when the sizes do not match.
std::vector<std::int32_t> overwrite_outside_segments(std::vector<std::int32_t> ids,
                                                     std::span<const std::int32_t> segment_ids, std::int32_t value);

}  // namespace etc::sparse
