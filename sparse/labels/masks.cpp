#include "sparse/labels/masks.h"

#include <algorithm>

#include "etc_core/base/error.h"

namespace etc::sparse {

std::vector<std::int32_t> segments_from_breakpoints(std::span<const std::int32_t> breakpoints, Breakpoints kind) {
  std::vector<std::int32_t> segments(breakpoints.size());
  std::int32_t segment = 0;
  for (std::size_t i = 0; i < breakpoints.size(); ++i) {
    if (kind == Breakpoints::starting) segment += breakpoints[i];
    segments[i] = segment;
    if (kind == Breakpoints::ending) segment += breakpoints[i];  // the breakpoint itself still belongs to its segment
  }
  return segments;
}

std::vector<std::int32_t> example_ids_from_breakpoints(std::span<const std::int32_t> breakpoints) {
  std::vector<std::int32_t> ids(breakpoints.size());
  std::int32_t id = 0;
  for (std::size_t i = breakpoints.size(); i-- > 0;) ids[i] = id += breakpoints[i];
  return ids;
}

std::vector<std::int32_t> segmented_mask(std::span<const std::int32_t> segment_ids) {
  const std::size_t n = segment_ids.size();
  std::vector<std::int32_t> mask(n * n);  // [n, n]
  for (std::size_t query = 0; query < n; ++query) {
    write_equal(segment_ids.data(), static_cast<std::int64_t>(n), segment_ids[query], mask.data() + query * n);
  }
  return mask;
}

std::vector<std::int32_t> mask_from_breakpoints(std::span<const std::int32_t> breakpoints, Breakpoints kind) {
  return segmented_mask(segments_from_breakpoints(breakpoints, kind));
}

std::vector<std::int32_t> local_segmented_mask(std::span<const std::int32_t> segment_ids, std::int64_t radius) {
  if (radius < 1) fail("masks", "local_radius must be at least 1, got {}", radius);
  const auto negative = std::find_if(segment_ids.begin(), segment_ids.end(), [](std::int32_t id) { return id < 0; });
  if (negative != segment_ids.end()) {
    fail("masks", "segment ids must not be negative, got {} at {}", *negative, negative - segment_ids.begin());
  }
  const std::int64_t n = static_cast<std::int64_t>(segment_ids.size()), W = 2 * radius + 1;
  std::vector<std::int32_t> mask(static_cast<std::size_t>(n * W), 0);  // [n, W]
  for (std::int64_t query = 0; query < n; ++query) {
    const WindowColumns columns = window_columns(query, n, radius);
    write_equal(segment_ids.data() + (query - radius + columns.first), columns.last - columns.first,
                segment_ids[static_cast<std::size_t>(query)], mask.data() + query * W + columns.first);
  }
  return mask;
}

std::vector<std::int32_t> local_mask_from_breakpoints(std::span<const std::int32_t> breakpoints, std::int64_t radius,
                                                      Breakpoints kind) {
  return local_segmented_mask(segments_from_breakpoints(breakpoints, kind), radius);
}

}  // namespace etc::sparse
