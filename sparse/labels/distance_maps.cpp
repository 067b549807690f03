#include "sparse/labels/distance_maps.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "sparse/labels/relative_ids.h"
#include "sparse/tile_run.h"

namespace etc::sparse {

namespace {

constexpr const char* kWhere = "relative positions";

void check_rows(const char* name, std::int64_t given, std::int64_t rows) {
  if (given < 0) fail(kWhere, "{}: expected at least 0, got {}", name, given);
  if (rows > kMostLabels) fail(kWhere, "{}: expected at most {} rows, got {}: clip", name, kMostLabels, rows);
}

// rows[d] = row(first + d) for `count` distances.
template <typename Row>
DistanceMap map_of(std::int64_t first, std::int64_t count, const Row& row) {
  DistanceMap map{first, {}};
  for (std::int64_t d = 0; d < count; ++d) map.rows.push_back(static_cast<std::uint32_t>(row(first + d)));
  return map;
}

// Buckets of one direction, and how many of them are exact.
struct OneDirection {
  std::int64_t buckets, exact;

  explicit OneDirection(const T5Buckets& settings)
      : buckets(settings.bidirectional ? settings.buckets / 2 : settings.buckets), exact(buckets / 2) {
    if (settings.buckets < 4 || (settings.bidirectional && settings.buckets % 2 != 0)) {
      fail(kWhere, "num_buckets: expected at least 4{}, got {}", settings.bidirectional ? ", an even number" : "",
           settings.buckets);
    }
    if (settings.max_distance <= exact) {
      fail(kWhere, "max_distance: expected more than the {} exact buckets of num_buckets={}, got {}", exact,
           settings.buckets, settings.max_distance);
    }
  }
};

}  // namespace

DistanceMap clipped_distances(std::int64_t k) {
  check_rows("clip", k, 2 * k + 1);
  return map_of(-k, 2 * k + 1, [&](std::int64_t d) { return d + k; });
}

DistanceMap undirected_distances(std::int64_t k) {
  check_rows("clip", k, k + 1);
  return map_of(-k, 2 * k + 1, [](std::int64_t d) { return std::abs(d); });
}

DistanceMap etc_distances(std::int64_t k) {
  check_rows("clip", k, 2 * k + 1);
  return map_of(-k, 2 * k + 1, [&](std::int64_t d) { return relative_id(d, k); });
}

DistanceMap reversed_distances(std::int64_t least, std::int64_t most) {
  if (most < least) fail(kWhere, "distances: expected least <= most, got {} and {}", least, most);
  check_rows("distances", most - least, most - least + 1);
  return map_of(-most, most - least + 1, [&](std::int64_t d) { return -d - least; });
}

std::int64_t t5_bucket(const T5Buckets& settings, std::int64_t distance) {
  const OneDirection own(settings);
  const std::int64_t base = settings.bidirectional && distance > 0 ? own.buckets : 0;
  const std::int64_t m = settings.bidirectional ? std::abs(distance) : std::max<std::int64_t>(-distance, 0);
  if (m < own.exact) return base + m;
  const auto exact = static_cast<double>(own.exact);
  const double share =
      std::log(static_cast<double>(m) / exact) / std::log(static_cast<double>(settings.max_distance) / exact);
  const auto beyond = static_cast<std::int64_t>(share * static_cast<double>(own.buckets - own.exact));
  return base + std::min(own.buckets - 1, own.exact + beyond);
}

DistanceMap t5_distances(const T5Buckets& settings) {
  const OneDirection checked(settings);
  // From max_distance on all distances share the last bucket.
  const std::int64_t far = settings.max_distance;
  return map_of(-far, 2 * far + 1, [&](std::int64_t d) { return t5_bucket(settings, d); });
}

}  // namespace etc::sparse
