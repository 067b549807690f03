#include "tasks/analyze/plots.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>

#include "etc_core/base/files.h"
#include "tasks/analyze/means.h"
#include "tasks/analyze/violins.h"
#include "tasks/plot/line_plot.h"

namespace etc::analyze {

namespace {

using plot::LinePlot, plot::Series;
using OfCell = double (*)(const Distribution& cell);

// A value for each layer, the mean over heads.
Series by_layer(const OperatorResults& of, Quantity quantity, OfCell take, const std::string& name) {
  Series series{name, {}};
  for (std::int64_t layer = 0; layer < of.layers; ++layer) {
    series.points.emplace_back(static_cast<double>(layer), over_heads(of, quantity, layer, take));
  }
  return series;
}

void write_picture(const std::filesystem::path& folder, const std::string& name, const std::string& svg) {
  write_file_atomically(folder / (name + ".svg"), svg);
}

// ---- Violins. ----

ViolinGrid grid_of(const OperatorResults& of, Quantity quantity, std::int64_t first_row) {
  ViolinGrid grid;
  grid.title = info_of(quantity).what;
  grid.unit = info_of(quantity).unit;
  grid.axis = grid.unit;
  grid.upper = of.cell(quantity, 0, 0).upper();
  grid.first_row = first_row;
  grid.rows = of.layers - first_row;
  grid.columns = of.heads;
  grid.cell = [&of, quantity, first_row](std::int64_t row, std::int64_t column) -> const Distribution& {
    return of.cell(quantity, first_row + row, column);
  };
  grid.label = [](std::int64_t, std::int64_t column) { return fmt::format("{}", column); };
  return grid;
}

// Heads in the order of their median entropy within each layer.
void sort_heads(const OperatorResults& of, Quantity quantity, ViolinGrid& grid) {
  const auto orders = std::make_shared<std::vector<std::vector<std::int64_t>>>();
  for (std::int64_t layer = 0; layer < of.layers; ++layer) orders->push_back(by_median_entropy(of, layer));
  const auto head = [orders](std::int64_t row, std::int64_t column) {
    return (*orders)[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  };
  grid.cell = [&of, quantity, head](std::int64_t row, std::int64_t column) -> const Distribution& {
    return of.cell(quantity, row, head(row, column));
  };
  grid.label = [head](std::int64_t row, std::int64_t column) { return fmt::format("{}", head(row, column)); };
}

void entropy_violins(const OperatorResults& of, const std::string& group, const std::filesystem::path& folder,
                     LogBase base) {
  ViolinGrid entropy = grid_of(of, Quantity::entropy, 0), normalised = grid_of(of, Quantity::entropy_normalised, 0);
  entropy.factor = base == LogBase::bits ? 1 / std::numbers::ln2 : 1;
  entropy.unit = entropy.axis = base == LogBase::bits ? "bits" : "nats";
  normalised.axis = "share";
  entropy.upper *= entropy.factor;
  entropy.low = 1.5;
  entropy.high = 4.5;
  // The same fractions of the range as the paper's bounds are of ln 512.
  normalised.low = 0.24;
  normalised.high = 0.72;
  sort_heads(of, Quantity::entropy, entropy);
  sort_heads(of, Quantity::entropy_normalised, normalised);
  write_picture(folder, "violins_entropy_" + of.name,
                drawn(fmt::format("Entropy of {} attention by layer and head, heads sorted by median; queries: {}",
                                  of.name, group),
                      {entropy, normalised}));
}

void jsd_violins(const OperatorResults& of, const std::string& group, const std::filesystem::path& folder) {
  const auto coloured = [](ViolinGrid grid) {
    grid.low = 0.25;
    grid.high = 0.75;
    return grid;
  };
  std::vector<ViolinGrid> grids{coloured(grid_of(of, Quantity::jsd, 1))};
  if (!of.heads_compared.empty()) {
    ViolinGrid best = coloured(grid_of(of, Quantity::jsd, 1));
    best.title = "the same, from the most similar head of the layer before (a<b: head a from head b)";
    best.cell = [&of](std::int64_t row, std::int64_t head) -> const Distribution& {
      return of.compared(row + 1, head, of.best_match(row + 1, head));
    };
    best.label = [&of](std::int64_t row, std::int64_t head) {
      return fmt::format("{}<{}", head, of.best_match(row + 1, head));
    };
    grids.push_back(best);
  }
  write_picture(
      folder, "violins_jsd_" + of.name,
      drawn(fmt::format("Divergence of {} attention in adjacent layers, same head; queries: {}", of.name, group),
            grids));
}

// ---- Lines. ----

void lines_by_layer(const OperatorResults& of, const std::filesystem::path& folder, const std::string& name,
                    LinePlot plot, const std::vector<Quantity>& quantities) {
  plot.x_label = "layer";
  for (const Quantity quantity : quantities) {
    if (of.has(quantity)) plot.series.push_back(by_layer(of, quantity, mean_of, of.name_of(quantity)));
  }
  if (!plot.series.empty()) write_picture(folder, name + "_" + of.name, drawn(plot));
}

// A line for each layer over labels or distances, the mean over heads of the first query group.
void profile(const OperatorResults& of, const std::vector<double>& sums, std::int64_t first, LinePlot plot,
             const std::filesystem::path& path) {
  const std::int64_t columns = std::ssize(sums) / (of.layers * of.heads * of.groups);
  for (std::int64_t layer = 0; layer < of.layers; ++layer) {
    Series series{fmt::format("layer {}", layer), {}};
    for (std::int64_t column = 0; column < columns; ++column) {
      const bool by_distance = &sums == &of.distance_mass;
      const std::int64_t queries =
          by_distance ? of.distance_queries[static_cast<std::size_t>(column)] : of.group_queries.front();
      double sum = 0;
      for (std::int64_t head = 0; head < of.heads; ++head) {
        sum += sums[static_cast<std::size_t>(((layer * of.heads + head) * of.groups) * columns + column)];
      }
      const double mean = queries > 0 ? sum / static_cast<double>(queries * of.heads) : std::nan("");
      series.points.emplace_back(static_cast<double>(first + column), mean);
    }
    plot.series.push_back(std::move(series));
  }
  write_file_atomically(path, drawn(plot));
}

void profiles(const OperatorResults& of, const std::filesystem::path& folder, const std::string& group) {
  for (std::size_t t = 0; t < of.types.size(); ++t) {
    if (of.label_mass[t].empty()) continue;
    profile(of, of.label_mass[t], 0,
            {fmt::format("Attention {} by relative label, queries: {}", of.types[t], group),
             "relative label (its number)",
             "mean probability, mean over heads",
             {}},
            folder / fmt::format("label_mass_{}.svg", of.types[t]));
  }
  profile(of, of.distance_mass, -of.reach,
          {fmt::format("Attention {} by distance, queries: {}", of.types[0], group),
           "key - query (tokens)",
           "mean probability, mean over heads",
           {}},
          folder / fmt::format("distance_mass_{}.svg", of.types[0]));
}

// ---- Gradients. ----

Series gradient_series(const std::vector<double>& norms, const std::string& name) {
  Series series{name, {}};
  for (const double norm : norms) series.points.emplace_back(static_cast<double>(series.points.size()), norm);
  return series;
}

void compare_gradients(std::span<const ModelAnalysis> models, const std::vector<std::string>& names,
                       const std::filesystem::path& folder) {
  if (models.front().gradients.examples == 0) return;
  for (std::size_t part = 0; part < 2; ++part) {
    const std::string name = parts_of(models.front().gradients)[part].first;
    LinePlot plot{part == 0 ? "Gradient norm of queries, keys and relative tables" : "Gradient norm of the rest",
                  "layer",
                  "L2 norm over the layer's parameters",
                  {}};
    for (std::size_t n = 0; n < models.size(); ++n) {
      plot.series.push_back(gradient_series(parts_of(models[n].gradients)[part].second, names[n]));
    }
    write_picture(folder, "compare_gradient_" + name, drawn(plot));
  }
}

}  // namespace

void write_plots(const ModelAnalysis& model, const std::filesystem::path& folder, LogBase base) {
  for (const OperatorResults& of : model.operators) {
    entropy_violins(of, model.groups.front(), folder, base);
    if (of.has(Quantity::jsd)) jsd_violins(of, model.groups.front(), folder);
    const bool typed = !of.types[1].empty();
    const auto lines = [&](const char* name, const char* what, const char* y_label,
                           const std::vector<Quantity>& of_what) {
      lines_by_layer(of, folder, name, {fmt::format("{}, {} attention", what, of.name), "", y_label, {}}, of_what);
    };
    lines("mass", typed ? "Probability by type" : "Queries with a probability above 0.99",
          "mean over queries and heads",
          {Quantity::mass_0, Quantity::mass_1, Quantity::member_1, Quantity::other_1, Quantity::one_hot});
    lines("entropy", typed ? "Entropy, whole and by type" : "Entropy", "mean over queries and heads (nats)",
          {Quantity::entropy, Quantity::entropy_0, Quantity::entropy_1});
    lines("carry", of.carries ? "Spread of logits and growth of carried scores" : "Spread of logits",
          "mean over queries and heads (units of a logit)",
          {Quantity::carry_mean, Quantity::carry_largest, Quantity::logit_stddev});
    profiles(of, folder, model.groups.front());
  }
  if (model.gradients.examples == 0) return;
  LinePlot plot{fmt::format("Gradient norm of the loss of {} examples", model.gradients.examples),
                "layer",
                "L2 norm over the layer's parameters",
                {}};
  plot.series.push_back(gradient_series(model.gradients.query_key, "queries, keys, relative tables"));
  plot.series.push_back(gradient_series(model.gradients.rest, "rest"));
  write_picture(folder, "gradient_norms", drawn(plot));
}

void write_comparison(std::span<const ModelAnalysis> models, const std::vector<std::string>& names,
                      const std::filesystem::path& folder) {
  struct Compared {
    const char* name;
    Quantity quantity;
    OfCell take;
    const char* title;
    const char* y_label;
  };
  constexpr Compared kCompared[] = {
      {"entropy", Quantity::entropy, median_of, "Median entropy", "mean over heads (nats)"},
      {"entropy_variance", Quantity::entropy, variance_of, "Variance of the entropy over tokens",
       "mean over heads (nats squared)"},
      {"jsd", Quantity::jsd, median_of, "Median divergence from the layer before", "mean over heads (bits)"},
      {"own_jsd", Quantity::own_jsd, median_of, "Median divergence of the layers' own scores",
       "mean over heads (bits)"},
      {"one_hot", Quantity::one_hot, mean_of, "Queries with a probability above 0.99", "share, mean over heads"},
      {"carry_mean", Quantity::carry_mean, mean_of, "Size of the carried scores",
       "mean over queries and heads (units of a logit)"},
  };
  for (const Compared& compared : kCompared) {
    for (const OperatorResults& of_first : models.front().operators) {
      LinePlot plot{fmt::format("{}, {} attention", compared.title, of_first.name), "layer", compared.y_label, {}};
      bool any = false;
      for (std::size_t n = 0; n < models.size(); ++n) {
        Series series{names[n] + " (none)", {}};  // keeps the model's colour
        for (const OperatorResults& of : models[n].operators) {
          if (of.name != of_first.name || !of.has(compared.quantity)) continue;
          series = by_layer(of, compared.quantity, compared.take, names[n]);
          any = true;
        }
        plot.series.push_back(std::move(series));
      }
      if (any) write_picture(folder, fmt::format("compare_{}_{}", compared.name, of_first.name), drawn(plot));
    }
  }
  compare_gradients(models, names, folder);
}

}  // namespace etc::analyze
