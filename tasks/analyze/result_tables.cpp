#include "tasks/analyze/result_tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tasks/analyze/means.h"
#include "tasks/output.h"

namespace etc::analyze {

namespace {

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

}  // namespace

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

}  // namespace etc::analyze
