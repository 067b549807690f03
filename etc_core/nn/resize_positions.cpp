#include "etc_core/nn/resize_positions.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "sparse/labels/relative_ids.h"

namespace etc {

namespace {

using Method = PositionConfig::Method;

// The distance (key - query) that a row represents; for huang1 its absolute value.
std::int64_t distance_of(Method method, std::int64_t row, std::int64_t clip) {
  if (method == Method::huang1) return row;
  if (method == Method::etc) return row <= clip ? row : clip - row;
  return row - clip;
}

std::int64_t row_of(Method method, std::int64_t distance, std::int64_t clip) {
  const std::int64_t clipped = std::clamp(distance, -clip, clip);
  if (method == Method::huang1) return clipped;
  return method == Method::etc ? sparse::relative_id(distance, clip) : clipped + clip;
}

std::string name_of_method(const DenseConfig& config) {
  return config.to_json().at("relative_positions");
}

}  // namespace

std::vector<std::int64_t> resized_rows(const DenseConfig& from, const DenseConfig& to) {
  const Method method = to.relative_positions;
  if (from.relative_positions != method) {
    fail_usage("resize_relative", "expected a checkpoint with the model's relative_positions {}, got {}",
               name_of_method(to), name_of_method(from));
  }
  if (method == Method::t5) {
    fail_usage("resize_relative", "expected clipped distances, got buckets of t5, which cannot be cut or extended");
  }
  const std::int64_t clip = to.clip();
  const std::int64_t count = method == Method::huang1 ? clip + 1 : 2 * clip + 1;
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < count; ++row) {
    rows.push_back(row_of(method, distance_of(method, row, clip), from.clip()));
  }
  return rows;
}

bool is_position_table(std::string_view parameter) {
  const std::string_view name = parameter.substr(parameter.rfind('/') + 1);
  return name == "relative_table" || name == "relative_value_table" || name == "relative_bias_table";
}

}  // namespace etc
