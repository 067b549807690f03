#include "tasks/analyze/result_arrays.h"

#include <functional>
#include <type_traits>

#include "data/h5/array_file.h"
#include "tasks/analyze/means.h"

namespace etc::analyze {

namespace {

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

std::string etc_prefix(const OperatorResults& results) {
  return results.types[1].empty() ? "" : "etc/";
}

}  // namespace

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

}  // namespace etc::analyze
