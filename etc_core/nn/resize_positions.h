// Resizes tables of relative positions to another clipping distance than they were trained with (relative-positions
// 15).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "etc_core/nn/dense_config.h"

namespace etc {

// For each row of a table for `to`, the row of the table for `from` to copy: the row of the same distance or, if `from`
// clips at a smaller distance, of its largest distance on the same side. So a smaller clip truncates the table and a
// larger one extends it. Throws UsageError if the methods differ or the rows are not clipped distances (T5's buckets).
std::vector<std::int64_t> resized_rows(const DenseConfig& from, const DenseConfig& to);

// Whether the parameter is a table of relative positions, by its name.
bool is_position_table(std::string_view parameter);

}  // namespace etc
