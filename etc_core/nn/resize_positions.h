// Tables of relative positions for another clip than they were trained with (relative-positions 15).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "etc_core/nn/dense_config.h"

namespace etc {

// Which row of a table made for `from` each row of the same table for `to` is: that of the same distance, or where
// `from` clips nearer, that of its farthest distance on the same side. So a smaller clip cuts, a larger one extends.
// Throws UsageError where the methods differ or the rows are no clipped distances (T5's buckets).
std::vector<std::int64_t> resized_rows(const DenseConfig& from, const DenseConfig& to);

// Whether the parameter is such a table, by its name.
bool is_position_table(std::string_view parameter);

}  // namespace etc
