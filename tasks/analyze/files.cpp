#include "tasks/analyze/files.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <type_traits>

#include "data/h5/array_file.h"
#include "etc_core/base/json.h"
#include "tasks/output.h"

namespace etc::analyze {

namespace {

std::vector<Quantity> quantities() {
  std::vector<Quantity> all;
  for (int i = 0; i < kQuantityCount; ++i) all.push_back(static_cast<Quantity>(i));
  return all;
}

template <typename Number>
void put_array(data::ArrayFileWriter& file, const std::string& path, const std::vector<std::int64_t>& shape,
               const std::vector<Number>& values) {
  using Numbers = data::ArrayFileWriter::Numbers;
  file.create(path, shape, std::is_same_v<Number, float> ? Numbers::floats : Numbers::integers);
  file.write_rows(path, 0, shape.front(), values.data());
}

std::vector<float> floats_of(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// One array [layers, heads, groups, per_cell] from a function of the cells.
template <typename Number>
using TakeCell = std::function<void(const Distribution& cell, std::vector<Number>& to)>;
template <typename Number>
std::vector<Number> of_cells(const OperatorResults& results, Quantity quantity, const TakeCell<Number>& take) {
  std::vector<Number> values;
  for (std::int64_t n = 0; n < results.layers * results.heads * results.groups; ++n) {
    const auto at = results.cell_index(quantity, 0, 0, 0) + static_cast<std::size_t>(n);
    take(results.cells[at], values);
  }
  return values;
}

void put_quantity(data::ArrayFileWriter& file, const std::string& path, const OperatorResults& results,
                  Quantity quantity) {
  const auto put = [&](const char* name, std::int64_t per_cell, const auto& take) {
    std::vector<std::int64_t> shape{results.layers, results.heads, results.groups};
    if (per_cell > 0) shape.push_back(per_cell);
    put_array(file, path + "/" + name, shape, of_cells(results, quantity, take));
  };
  using Floats = TakeCell<float>;
  using Counts = TakeCell<std::int64_t>;
  const auto number = [](double (*of)(const Distribution&)) {
    return Floats([of](const Distribution& cell, auto& to) { to.push_back(static_cast<float>(of(cell))); });
  };
  put("count", 0, Counts([](const Distribution& cell, auto& to) { to.push_back(cell.count()); }));
  put("mean", 0, number(mean_of));
  put("var", 0, number(variance_of));
  put("least", 0, number([](const Distribution& cell) { return cell.least(); }));
  put("largest", 0, number([](const Distribution& cell) { return cell.largest(); }));
  put("skipped", 0, Counts([](const Distribution& cell, auto& to) { to.push_back(cell.skipped()); }));
  if (info_of(quantity).range == QuantityInfo::Range::open) return;
  put("quantiles", std::ssize(kQuantiles), Floats([](const Distribution& cell, auto& to) {
        for (const double q : kQuantiles) to.push_back(static_cast<float>(cell.quantile(q)));
      }));
  put("histogram", kBins, Counts([](const Distribution& cell, auto& to) {
        for (std::size_t bin = 0; bin < kBins; ++bin) to.push_back(cell.bins().empty() ? 0 : cell.bins()[bin]);
      }));
  put_array(file, path + "/histogram_end", {1},
            std::vector<float>{static_cast<float>(results.cell(quantity, 0, 0).upper())});
}

// Means [layers, heads, groups, columns] of sums over queries; counts [groups, columns], or [groups] for all columns.
std::vector<float> means_of(const std::vector<double>& sums, std::int64_t columns, const OperatorResults& results,
                            const std::function<std::int64_t(int group, std::int64_t column)>& count) {
  std::vector<float> means;
  for (std::int64_t i = 0; i < std::ssize(sums); ++i) {
    const std::int64_t queries = count(static_cast<int>(i / columns % results.groups), i % columns);
    const double sum = sums[static_cast<std::size_t>(i)];
    means.push_back(queries > 0 ? static_cast<float>(sum / static_cast<double>(queries)) : std::nanf(""));
  }
  return means;
}

std::vector<float> label_means(const OperatorResults& results, std::size_t t) {
  return means_of(results.label_mass[t], results.labels, results,
                  [&](int group, std::int64_t) { return results.group_queries[static_cast<std::size_t>(group)]; });
}

std::vector<float> distance_means(const OperatorResults& results) {
  const std::int64_t columns = 2 * results.reach + 1;
  return means_of(results.distance_mass, columns, results, [&](int group, std::int64_t column) {
    return results.distance_queries[static_cast<std::size_t>(group * columns + column)];
  });
}

std::string etc_prefix(const OperatorResults& results) {
  return results.types[1].empty() ? "" : "etc/";
}

// A table as text with comma-separated columns.
class Csv {
 public:
  Csv(const std::filesystem::path& path, const std::string& head) : path_(path), text_(head + "\n") {}
  template <typename... Cells>
  void row(const Cells&... cells) {
    std::string line;
    ((line += (line.empty() ? "" : ",") + text(cells)), ...);
    text_ += line + "\n";
  }
  void finish() const { write_file_atomically(path_, text_); }

 private:
  static std::string text(const std::string& words) { return words; }
  static std::string text(const char* words) { return words; }
  static std::string text(double number) { return std::isnan(number) ? "" : fmt::format("{:.7g}", number); }
  template <typename Integer>
  static std::string text(Integer number) {
    return fmt::format("{}", number);
  }

  std::filesystem::path path_;
  std::string text_;
};

// A row per layer, head and group; entropies in nats and in bits.
void add_statistics(Csv& csv, const ModelAnalysis& model, const OperatorResults& of, Quantity quantity) {
  const QuantityInfo& info = info_of(quantity);
  for (std::int64_t n = 0; n < of.layers * of.heads * of.groups; ++n) {
    const std::int64_t layer = n / of.groups / of.heads, head = n / of.groups % of.heads, group = n % of.groups;
    const Distribution& cell = of.cell(quantity, layer, head, static_cast<int>(group));
    if (cell.count() == 0) continue;
    const bool nats = info.range == QuantityInfo::Range::log_keys;
    const auto put = [&](const char* unit, double factor) {
      const auto q = [&](std::size_t i) { return factor * cell.quantile(kQuantiles[i]); };
      csv.row(of.name, of.name_of(quantity), unit, layer, head, model.groups[static_cast<std::size_t>(group)],
              cell.count(), cell.skipped(), factor * cell.mean(), factor * factor * cell.variance(),
              factor * cell.least(), q(0), q(1), q(2), q(3), q(4), factor * cell.largest(),
              nats ? std::exp(cell.quantile(0.5)) : std::nan(""));
    };
    put(info.unit, 1);
    if (nats) put("bits", 1 / std::numbers::ln2);
  }
}

void add_means(Csv& csv, const ModelAnalysis& model, const OperatorResults& of, const std::vector<float>& means,
               const std::string& type, std::int64_t first) {
  const std::int64_t columns = std::ssize(means) / (of.layers * of.heads * of.groups);
  for (std::int64_t i = 0; i < std::ssize(means); ++i) {
    const std::int64_t column = i % columns, cell = i / columns, group = cell % of.groups;
    csv.row(of.name, type, cell / of.groups / of.heads, cell / of.groups % of.heads,
            model.groups[static_cast<std::size_t>(group)], first + column,
            static_cast<double>(means[static_cast<std::size_t>(i)]));
  }
}

// A line per table, row and head of the first layer: the distances of the row (the end rows cover all farther ones) or its
// other meaning.
void write_tables(const ModelAnalysis& model, const std::filesystem::path& path) {
  if (model.first_layer.empty()) return;
  Csv csv(path, "table,row,first_distance,last_distance,label,head,norm_or_value");
  for (const RelativeTableValues& table : model.first_layer) {
    for (std::int64_t row = 0; row < table.rows; ++row) {
      const auto own = std::find(table.row_of.begin(), table.row_of.end(), row);
      const auto last = std::find(table.row_of.rbegin(), table.row_of.rend(), row);
      const std::int64_t other = row - std::ssize(table.row_of);
      const bool named = own == table.row_of.end() && other >= 0 && other < std::ssize(table.other_rows);
      const std::int64_t from = table.first + (own - table.row_of.begin());
      const std::int64_t to = table.first + (table.row_of.rend() - last) - 1;
      const auto distance = [&](std::int64_t d) {
        return own == table.row_of.end() ? std::string() : std::to_string(d);
      };
      for (std::int64_t head = 0; head < table.heads; ++head) {
        csv.row(table.name, row, distance(from), distance(to),
                named ? table.other_rows[static_cast<std::size_t>(other)] : "", head, table.size_of(row, head));
      }
    }
  }
  csv.finish();
}

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

double median_of(const Distribution& cell) {
  return cell.quantile(0.5);
}
double mean_of(const Distribution& cell) {
  return cell.mean();
}
double variance_of(const Distribution& cell) {
  return cell.variance();
}

double maximum_of(const Distribution& cell) {
  return cell.largest();
}

double over_heads(const OperatorResults& results, Quantity quantity, std::int64_t layer,
                  double (*of)(const Distribution& cell)) {
  double sum = 0;
  for (std::int64_t head = 0; head < results.heads; ++head) sum += of(results.cell(quantity, layer, head));
  return sum / static_cast<double>(results.heads);
}

std::string h5_path(const ModelAnalysis& model, const OperatorResults& results, Quantity quantity) {
  const std::string general = info_of(quantity).name, own = results.name_of(quantity);
  const std::size_t mark = general.find("_%");
  if (mark == std::string::npos) return own + (model.operators.size() > 1 ? "/" + results.name : "");
  const std::string kind = general.substr(0, mark), type = own.substr(mark + 1);
  return etc_prefix(results) + (kind == "entropy" ? "entropy_type" : kind) + "/" + type;
}

void write_h5(const ModelAnalysis& model, const std::filesystem::path& path) {
  data::ArrayFileWriter file(path);
  for (const OperatorResults& of : model.operators) {
    const auto cells = [&](std::int64_t columns) {
      return std::vector<std::int64_t>{of.layers, of.heads, of.groups, columns};
    };
    for (const Quantity quantity : quantities()) {
      if (of.has(quantity)) put_quantity(file, h5_path(model, of, quantity), of, quantity);
    }
    for (std::size_t t = 0; t < of.types.size(); ++t) {
      if (of.label_mass[t].empty()) continue;
      put_array(file, etc_prefix(of) + "label_mass/" + of.types[t], cells(of.labels), label_means(of, t));
    }
    put_array(file, etc_prefix(of) + "distance_mass/" + of.types[0], cells(2 * of.reach + 1), distance_means(of));
    if (of.heads_compared.empty()) continue;
    std::vector<float> means, medians;
    for (const Distribution& pair : of.heads_compared) {
      means.push_back(static_cast<float>(pair.mean()));
      medians.push_back(static_cast<float>(pair.quantile(0.5)));
    }
    put_array(file, "jsd_of_heads/" + of.name + "/mean", {of.layers, of.heads, of.heads}, means);
    put_array(file, "jsd_of_heads/" + of.name + "/median", {of.layers, of.heads, of.heads}, medians);
  }
  for (const TableNorms& table : model.tables) {
    put_array(file, "tables/" + table.name, {table.rows, table.heads}, floats_of(table.values));
  }
  for (const RelativeTableValues& table : model.first_layer) {
    put_array(file, "first_layer/" + table.name, {table.rows, table.heads, table.size}, table.values);
  }
  const FirstTokens& tokens = model.first_tokens;
  if (tokens.tokens > 0) {
    put_array(file, "first_layer/tokens", {tokens.tokens, tokens.tokens}, floats_of(tokens.attention));
  }
  for (const auto& [part, norms] : parts_of(model.gradients)) {
    if (!norms.empty()) put_array(file, "gradients/" + part, {std::ssize(norms)}, floats_of(norms));
  }
  file.finish();
}

void write_csv(const ModelAnalysis& model, const std::filesystem::path& folder) {
  Csv statistics(folder / "statistics.csv",
                 "operator,quantity,unit,layer,head,group,count,skipped,mean,variance,least,q5,q25,median,q75,q95,"
                 "largest,effective_keys");
  Csv labels(folder / "label_mass.csv", "operator,type,layer,head,group,label,mean_mass");
  Csv distances(folder / "distance_mass.csv", "operator,type,layer,head,group,distance,mean_mass");
  Csv matches(folder / "best_match.csv", "operator,layer,head,best_head,mean_jsd,median_jsd,mean_jsd_same_head");
  bool compared = false;
  for (const OperatorResults& of : model.operators) {
    for (const Quantity quantity : quantities()) {
      if (of.has(quantity)) add_statistics(statistics, model, of, quantity);
    }
    for (std::size_t t = 0; t < of.types.size(); ++t) {
      if (!of.label_mass[t].empty()) add_means(labels, model, of, label_means(of, t), of.types[t], 0);
    }
    add_means(distances, model, of, distance_means(of), of.types[0], -of.reach);
    for (std::int64_t n = of.heads; n < of.layers * of.heads && !of.heads_compared.empty(); ++n) {
      const std::int64_t layer = n / of.heads, head = n % of.heads, best = of.best_match(layer, head);
      const Distribution& pair = of.compared(layer, head, best);
      matches.row(of.name, layer, head, best, pair.mean(), pair.quantile(0.5), of.compared(layer, head, head).mean());
      compared = true;
    }
  }
  statistics.finish();
  labels.finish();
  distances.finish();
  if (compared) matches.finish();
  write_tables(model, folder / "relative_tables.csv");
  if (model.gradients.examples == 0) return;
  Csv gradients(folder / "gradient_norms.csv", "layer,part,norm");
  for (const auto& [part, norms] : parts_of(model.gradients)) {
    for (std::size_t layer = 0; layer < norms.size(); ++layer) gradients.row(layer, part, norms[layer]);
  }
  gradients.finish();
}

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
