#include "sparse/labels/relative_ids.h"

#include "etc_core/base/error.h"

namespace etc::sparse {

namespace {

void check(std::int64_t n, std::int64_t max_distance) {
  if (n < 1) fail("relative_ids", "the sequence must have at least one token, got {}", n);
  if (max_distance < 0) fail("relative_ids", "relative_pos_max_distance must not be negative, got {}", max_distance);
}

}  // namespace

std::vector<std::int32_t> full_relative_ids(std::int64_t n, std::int64_t max_distance, Direction direction) {
  check(n, max_distance);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n * n));  // [n, n]
  for (std::int64_t query = 0; query < n; ++query) {
    write_distance_ids(-query, n, max_distance, direction, ids.data() + query * n);
  }
  return ids;
}

std::vector<std::int32_t> local_relative_ids(std::int64_t n, std::int64_t radius, std::int64_t max_distance,
                                             Direction direction) {
  check(n, max_distance);
  if (radius < 1) fail("relative_ids", "local_radius must be at least 1, got {}", radius);
  const std::int64_t W = 2 * radius + 1;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n * W));  // [n, W]
  for (std::int64_t query = 0; query < n; ++query) {
    write_distance_ids(-radius, W, max_distance, direction, ids.data() + query * W);
  }
  return ids;
}

std::vector<std::int32_t> overwrite_outside_segments(std::vector<std::int32_t> ids,
                                                     std::span<const std::int32_t> segment_ids, std::int32_t value) {
  const std::size_t n = segment_ids.size();
  if (ids.size() != n * n) {
    fail("relative_ids", "expected ids [{}, {}] for {} segment ids, got {} ids", n, n, n, ids.size());
  }
  for (std::size_t query = 0; query < n; ++query) {
    for (std::size_t key = 0; key < n; ++key) {
      if (segment_ids[query] != segment_ids[key]) ids[query * n + key] = value;
    }
  }
  return ids;
}

}  // namespace etc::sparse
