#include "tasks/analyze/summary.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/json.h"
#include "tasks/analyze/means.h"

namespace etc::analyze {

namespace {

// Spearman's rank correlation of values with their index; nan for fewer than two different values, and if one is nan.
double rank_correlation(const std::vector<double>& values) {
  if (std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); })) return std::nan("");
  std::vector<double> ranks;
  for (const double x : values) {
    double rank = 0;
    for (const double y : values) rank += y < x ? 1 : (y == x ? 0.5 : 0);
    ranks.push_back(rank);
  }
  const double mean = static_cast<double>(values.size()) / 2;
  double product = 0, own = 0, index = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double a = ranks[i] - mean, b = static_cast<double>(i) + 0.5 - mean;
    product += a * b;
    own += a * a;
    index += b * b;
  }
  return own > 0 && index > 0 ? product / std::sqrt(own * index) : std::nan("");
}

Json number(double value) {
  return std::isnan(value) ? Json() : Json(value);
}

// The first layer's attention near distance 0 and within distance 10, or the reach if that is less; mean over heads, first
// query group. The mean at a distance is over the queries that have it, the mass within a distance over all queries.
Json near_attention(const OperatorResults& of) {
  const std::vector<float> means = distance_means(of);
  const std::int64_t columns = 2 * of.reach + 1, far = std::min(kFarFrom, of.reach);
  Json json = Json::object();
  double within = 0;
  for (std::int64_t d = -far; d <= far; ++d) {
    double sum = 0;
    for (std::int64_t head = 0; head < of.heads; ++head) {
      const auto at = static_cast<std::size_t>(head * of.groups * columns + d + of.reach);
      sum += static_cast<double>(means[at]);
      within += of.distance_mass[at] / static_cast<double>(of.cell(Quantity::entropy, 0, head).count());
    }
    if (std::abs(d) <= 2) json[fmt::format("{:+}", d)] = number(sum / static_cast<double>(of.heads));
  }
  json[fmt::format("within_{}", far)] = number(within / static_cast<double>(of.heads));
  return json;
}

Json summary_of(const OperatorResults& of) {
  Json json = {{"operator", of.name}, {"queries", of.queries}, {"queries_without_visible_keys", of.unseen}};
  std::vector<double> medians;
  Json orders = Json::array();
  for (std::int64_t layer = 0; layer < of.layers; ++layer) {
    medians.push_back(over_heads(of, Quantity::entropy, layer, median_of));
    orders.push_back(by_median_entropy(of, layer));
  }
  json["heads_by_median_entropy"] = orders;
  json["rank_correlation_of_layer_and_median_entropy"] = number(rank_correlation(medians));
  const auto top = static_cast<std::int64_t>(medians.size()) - std::max<std::int64_t>(1, of.layers / 4);
  double sum = 0;
  for (std::int64_t layer = top; layer < of.layers; ++layer) sum += medians[static_cast<std::size_t>(layer)];
  json["first_layer_probability_by_distance"] = near_attention(of);
  json["median_entropy_of_the_top_quarter"] = number(sum / static_cast<double>(of.layers - top));
  for (const Quantity quantity : quantities()) {
    if (!of.has(quantity)) continue;
    Json of_layers = {{"unit", info_of(quantity).unit}, {"mean", Json::array()}, {"variance", Json::array()}};
    const bool open = info_of(quantity).range == QuantityInfo::Range::open;
    for (std::int64_t layer = 0; layer < of.layers; ++layer) {
      of_layers["mean"].push_back(number(over_heads(of, quantity, layer, mean_of)));
      of_layers["variance"].push_back(number(over_heads(of, quantity, layer, variance_of)));
      if (open) {
        of_layers["largest"].push_back(number(over_heads(of, quantity, layer, maximum_of)));
      } else {
        of_layers["median"].push_back(number(over_heads(of, quantity, layer, median_of)));
      }
    }
    json["mean_over_heads_by_layer"][of.name_of(quantity)] = of_layers;
  }
  return json;
}

// The size of the row at distance 0 relative to far ones, and the logit bias of membership (analysis 6).
Json summary_of(const RelativeTableValues& table) {
  Json json = {{"table", table.name}, {"rows", table.rows}, {"heads", table.heads}};
  json["row_of_distance_0_by_median_beyond_10"] = number(table.nearness());
  if (table.vectors || table.other_rows.size() < 2) return json;
  const auto not_member = std::ssize(table.row_of);
  for (std::int64_t head = 0; head < table.heads; ++head) {
    json["member_less_not_member"].push_back(table.size_of(not_member + 1, head) - table.size_of(not_member, head));
  }
  return json;
}

}  // namespace

std::vector<std::string> notes_of(const ModelAnalysis& model) {
  std::vector<std::string> notes;
  if (model.layers == 1) notes.emplace_back("one layer: there is nothing to compare, so no divergences");
  for (std::size_t group = 0; group < model.groups.size(); ++group) {
    const bool any = std::any_of(model.operators.begin(), model.operators.end(),
                                 [&](const OperatorResults& of) { return of.group_queries[group] > 0; });
    if (!any) notes.push_back(fmt::format("group {}: the data have no such query", model.groups[group]));
  }
  return notes;
}

Json summary_of(std::span<const ModelAnalysis> models) {
  Json all = Json::array();
  for (const ModelAnalysis& model : models) {
    Json json = {{"model", model.folder.string()},
                 {"task", model.task},
                 {"data", model.data},
                 {"residual_scores", model.residual},
                 {"layers", model.layers},
                 {"heads", model.heads},
                 {"examples", model.examples},
                 {"examples_asked", model.examples_asked},
                 {"tokens", model.tokens},
                 {"query_groups", model.groups},
                 {"notes", notes_of(model)},
                 {"operators", Json::array()}};
    for (const OperatorResults& of : model.operators) json["operators"].push_back(summary_of(of));
    for (const RelativeTableValues& table : model.first_layer) json["relative_tables"].push_back(summary_of(table));
    if (model.gradients.examples > 0) {
      json["gradient_norms"] = {{"examples", model.gradients.examples}, {"loss", model.gradients.loss}};
      for (const auto& [part, norms] : parts_of(model.gradients)) json["gradient_norms"][part] = norms;
    }
    all.push_back(std::move(json));
  }
  return {{"format", "etc analysis"},
          {"logarithms", "entropies in nats (statistics.csv has bits, too), divergences in bits"},
          {"models", all}};
}

}  // namespace etc::analyze
