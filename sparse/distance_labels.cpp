#include "sparse/distance_labels.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

namespace {

constexpr std::int64_t kBeyond = kGroup - 1;  // distances of a column in addition to that of its first query

void check(const TypeTiles& tiles, const DistanceMap& map, const std::vector<std::int64_t>& shifts) {
  const char* const type = tiles.type.name;
  if (tiles.relative) {
    fail("labels", "labels.{}: expected a type whose listed labels only mask (R=0), got listed labels with R={}", type,
         tiles.relative_labels);
  }
  if (map.rows.empty()) fail("labels", "labels.{}: expected a map of at least one distance, got none", type);
  const std::uint32_t largest = *std::max_element(map.rows.begin(), map.rows.end());
  if (largest >= kMostLabels) {
    fail("labels", "labels.{}: expected rows below {}, got {}: clip the distances", type, kMostLabels, largest);
  }
  if (!shifts.empty() && static_cast<std::int64_t>(shifts.size()) != tiles.examples()) {
    fail("labels", "labels.{}: expected a shift for each of B={} examples, got {}", type, tiles.examples(),
         shifts.size());
  }
}

}  // namespace

void label_by_distance(TypeTiles& tiles, const DistanceMap& map, std::vector<std::int64_t> shifts) {
  check(tiles, map, shifts);
  const auto distances = static_cast<std::int64_t>(map.rows.size());
  const auto row = [&](std::int64_t at) {
    return map.rows[static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, distances - 1))];
  };
  DistanceLabels& own = tiles.distance;
  own.first = map.first;
  own.shifts = std::move(shifts);
  if (own.shifts.empty()) {
    for (std::int64_t b = 0; b < tiles.examples(); ++b) own.shifts.push_back(-tiles.first_position(b));
  }
  own.codes = Buffer<std::uint32_t>(distances + kBeyond, Purpose::labels);
  own.lanes = Buffer<std::int32_t>(distances + 2 * kBeyond, Purpose::labels);
  // In descending order of distance: within a group a later query has a smaller distance to the key, so the labels of
  // queries 0 … 15 are consecutive.
  const std::int64_t farthest = distances + kBeyond - 1;  // right; counted from the map's first distance
  for (std::int64_t n = 0; n < own.lanes.size(); ++n) own.lanes[n] = static_cast<std::int32_t>(row(farthest - n));
  for (std::int64_t at = 0; at < own.codes.size(); ++at) {
    const std::int32_t* const lanes = own.lanes.data() + (farthest - at);  // [kGroup]
    const bool one = std::all_of(lanes, lanes + kGroup, [&](std::int32_t label) { return label == lanes[0]; });
    own.codes[at] =
        one ? static_cast<std::uint32_t>(lanes[0]) : kFirstMixed + static_cast<std::uint32_t>(farthest - at);
  }
  tiles.relative_labels = static_cast<std::int64_t>(*std::max_element(map.rows.begin(), map.rows.end())) + 1;
}

}  // namespace etc::sparse
