// Plots of a model's relative positions: the first layer's tables, and the attention of the first tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "etc_core/base/files.h"
#include "tasks/analyze/heat_map.h"
#include "tasks/analyze/plots.h"
#include "tasks/plot/line_plot.h"

namespace etc::analyze {

namespace {

constexpr std::int64_t kDrawn = 50;  // distances either way

// The table's values: for vectors those of the first head, for scalars all heads.
std::string picture_of_rows(const RelativeTableValues& table, std::int64_t first, std::int64_t last) {
  HeatMap map;
  map.title =
      fmt::format("First layer{}: {} by distance", table.vectors && table.heads > 1 ? ", first head" : "", table.name);
  map.x_label = "distance, key - query (tokens)";
  map.y_label = table.vectors ? "component" : "head";
  map.unit = table.name.ends_with("biases") ? "bias (units of a logit)" : "value";
  map.first_column = first;
  map.columns = last - first + 1;
  map.rows = table.vectors ? table.size : table.heads;
  map.value = [&table, first](std::int64_t row, std::int64_t column) {
    const std::int64_t at = table.row(first + column);
    const std::int64_t place = table.vectors ? at * table.heads * table.size + row : at * table.heads + row;
    return static_cast<double>(table.values[static_cast<std::size_t>(place)]);
  };
  return drawn(map);
}

std::string picture_of_sizes(const RelativeTableValues& table, std::int64_t first, std::int64_t last) {
  plot::LinePlot plot;
  const double nearness = table.nearness();
  plot.title = fmt::format("First layer: {} of {} by distance", table.vectors ? "norms" : "values", table.name);
  if (!std::isnan(nearness)) plot.title += fmt::format(" (at 0: {:.3g} times the median far away)", nearness);
  plot.x_label = "distance, key - query (tokens)";
  plot.y_label = table.vectors ? "L2 norm of the row" : "value";
  plot.from_zero = table.vectors;
  for (std::int64_t head = 0; head < table.heads; ++head) {
    plot::Series series{table.heads > 1 ? fmt::format("head {}", head) : "all heads", {}};
    for (std::int64_t d = first; d <= last; ++d) {
      series.points.emplace_back(static_cast<double>(d), table.size_of(table.row(d), head));
    }
    plot.series.push_back(std::move(series));
  }
  return drawn(plot);
}

}  // namespace

void write_relative_plots(const ModelAnalysis& model, const std::filesystem::path& folder) {
  for (const RelativeTableValues& table : model.first_layer) {
    if (table.row_of.empty()) continue;
    const std::int64_t end = table.first + std::ssize(table.row_of) - 1;
    const std::int64_t first = std::max(table.first, -kDrawn), last = std::min(end, kDrawn);
    if (first > last) continue;
    write_file_atomically(folder / ("relative_" + table.name + ".svg"), picture_of_rows(table, first, last));
    write_file_atomically(folder / ("relative_sizes_" + table.name + ".svg"), picture_of_sizes(table, first, last));
  }
  const FirstTokens& tokens = model.first_tokens;
  if (tokens.tokens == 0) return;
  HeatMap map;
  map.title = fmt::format("First layer, {} attention of the first {} tokens of an example", tokens.op, tokens.tokens);
  map.x_label = "key (token)";
  map.y_label = "query (token)";
  map.unit = "probability, mean over heads";
  map.columns = map.rows = tokens.tokens;
  map.rows_fall = true;
  map.signs = false;
  map.value = [&](std::int64_t query, std::int64_t key) {
    return tokens.attention[static_cast<std::size_t>(query * tokens.tokens + key)];
  };
  write_file_atomically(folder / "first_tokens.svg", drawn(map));
}

}  // namespace etc::analyze
