#include "tasks/analyze/relative_tables.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "etc_core/base/json.h"
#include "etc_core/base/median.h"
#include "sparse/labels/relative_ids.h"
#include "tasks/analyze/results.h"

namespace etc::analyze {

namespace {

// Rows by distance if labels follow from the distance. The tiles list the labels in descending order of distance, kGroup - 1
// of them beyond either end (sparse/distance_labels.h).
void rows_by_distance(const sparse::DistanceLabels& labels, RelativeTableValues& table) {
  const std::int64_t farthest = labels.codes.size() - 1, distances = labels.codes.size() - (sparse::kGroup - 1);
  table.first = labels.first;
  for (std::int64_t at = 0; at < distances; ++at) table.row_of.push_back(labels.lanes[farthest - at]);
}

// Rows by distance for ETC's ids, which the input lists.
void rows_of_ids(std::int64_t max_distance, RelativeTableValues& table) {
  table.first = -max_distance;
  for (std::int64_t d = -max_distance; d <= max_distance; ++d) {
    table.row_of.push_back(sparse::relative_id(d, max_distance));
  }
  for (const char* name : {"not member", "member", "other paragraph"}) {
    if (sparse::distance_id_count(max_distance) + std::ssize(table.other_rows) < table.rows)
      table.other_rows.push_back(name);
  }
}

// What the rows of a parameter are.
enum class Rows { vectors, scalars, etc_biases };
std::optional<Rows> rows_of(const std::string& parameter, const std::string& method) {
  const std::string name = parameter.substr(parameter.rfind('/') + 1);
  if (name == "relative_bias_table") return Rows::etc_biases;
  if (name == "relative_emb_table" || name == "relative_value_table") return Rows::vectors;
  if (name != "relative_table") return {};
  return method == "t5" || method == "huang1" || method == "huang2" ? Rows::scalars : Rows::vectors;
}

}  // namespace

std::vector<TableNorms> table_norms_of(const EncoderConfig& model, const ParameterSet& parameters) {
  std::vector<TableNorms> tables;
  const std::string method = model.to_json().value("relative_positions", std::string());
  const double scale = 1 / std::sqrt(static_cast<double>(model.head_size()));
  for (const auto& parameter : parameters.all()) {
    const std::optional<Rows> kind = rows_of(parameter->name, method);
    if (!kind || !parameter->value) continue;
    // [R, N, D] or [R, N], without N where heads share the rows
    const std::vector<std::int64_t>& shape = parameter->shape;
    const std::size_t own = *kind == Rows::vectors ? 1 : 0;  // dimensions of one row
    const std::int64_t size = own == 1 ? shape.back() : 1;
    TableNorms table{parameter->name, shape[0], shape.size() == own + 2 ? shape[1] : 1, {}};
    const float* row = parameter->value.data();
    for (std::int64_t n = 0; n < table.rows * table.heads; ++n, row += size) {
      double squares = 0;
      for (std::int64_t c = 0; c < size; ++c) squares += static_cast<double>(row[c]) * static_cast<double>(row[c]);
      const double scalar = static_cast<double>(row[0]) * (*kind == Rows::etc_biases ? scale : 1);
      table.values.push_back(*kind == Rows::vectors ? std::sqrt(squares) : scalar);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

double RelativeTableValues::size_of(std::int64_t row, std::int64_t head) const {
  const float* const own = values.data() + (row * heads + head) * size;
  if (!vectors) return static_cast<double>(own[0]);
  double sum = 0;
  for (std::int64_t c = 0; c < size; ++c) sum += static_cast<double>(own[c]) * static_cast<double>(own[c]);
  return std::sqrt(sum);
}

double RelativeTableValues::nearness() const {
  const auto mean = [&](std::int64_t distance) {
    double sum = 0;
    for (std::int64_t head = 0; head < heads; ++head) sum += std::abs(size_of(row(distance), head));
    return sum / static_cast<double>(heads);
  };
  std::vector<double> far;
  for (std::int64_t d = first; has(d); ++d) {
    if (std::abs(d) > kFarFrom) far.push_back(mean(d));
  }
  if (far.empty() || !has(0)) return std::nan("");
  return mean(0) / median(far);
}

std::vector<RelativeTableValues> relative_tables_of(const WatchedAttention& watched, std::int64_t etc_max_distance) {
  const sparse::AttentionInputs& in = watched.inputs;
  const sparse::RelativeTable& from = in.relative;
  const std::string name = short_name(*in.tiles->op);
  std::vector<RelativeTableValues> tables;
  const auto add = [&](const char* part, const float* values, bool vectors, float factor = 1) {
    if (values == nullptr) return;
    RelativeTableValues table;
    table.name = name + "_" + part;
    table.vectors = vectors;
    table.rows = from.labels;
    table.heads = from.heads(in.heads);
    table.size = vectors ? in.head_size : 1;
    table.values.assign(values, values + table.rows * table.heads * table.size);
    for (float& value : table.values) value *= factor;
    const auto by_distance = std::find_if(std::begin(in.tiles->types), std::end(in.tiles->types),
                                          [](const sparse::TypeTiles& type) { return type.distance.used(); });
    if (by_distance != std::end(in.tiles->types)) {
      rows_by_distance(by_distance->distance, table);
    } else if (etc_max_distance > 0) {
      rows_of_ids(etc_max_distance, table);
    }
    tables.push_back(std::move(table));
  };
  add("vectors", from.vectors, true);
  // Huang's method 4 adds one table to both sides, NEZHA one to keys and values.
  if (from.key_vectors != from.vectors) add("key_vectors", from.key_vectors, true);
  add("products", from.products, true);
  if (from.value_vectors != from.vectors) add("value_vectors", from.value_vectors, true);
  add("factors", from.factors, false);
  add("biases", from.biases, false, sparse::score_scale(in));
  return tables;
}

}  // namespace etc::analyze
