#include "tasks/analyze/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"

namespace etc::analyze {

namespace {

using sparse::QueryStatistic;
using Range = QuantityInfo::Range;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kOneHot = 0.99;

constexpr QuantityInfo kInfo[kQuantityCount] = {
    {"entropy", "nats", "entropy of the attention probabilities", Range::log_keys},
    {"entropy_normalised", "of ln(visible keys)", "entropy divided by its largest value", Range::one},
    {"entropy_%0", "nats", "entropy within the type, renormalised", Range::log_keys},
    {"entropy_%1", "nats", "entropy within the type, renormalised", Range::log_keys},
    {"entropy_normalised_%0", "of ln(visible keys)", "the same divided by its largest value", Range::one},
    {"entropy_normalised_%1", "of ln(visible keys)", "the same divided by its largest value", Range::one},
    {"mass_%0", "", "probability on keys of the type", Range::one},
    {"mass_%1", "", "probability on keys of the type", Range::one},
    {"member_%1", "", "probability on keys of the type that the query belongs to, or that belong to it", Range::one},
    {"other_%1", "", "probability on the other keys of the type", Range::one},
    {"one_hot", "", "share of queries with a probability above 0.99", Range::one},
    {"distance_%0", "tokens", "mean distance of what is attended to, weighted by probability", Range::open},
    {"logit_stddev", "", "standard deviation of a query's logits", Range::open},
    {"carry_mean", "", "mean size of the carried scores of a query", Range::open},
    {"carry_largest", "", "largest size of the carried scores of a query", Range::open},
    {"jsd", "bits", "Jensen-Shannon divergence from the layer before", Range::one},
    {"jsd_%0", "bits", "the same within the type, renormalised", Range::one},
    {"jsd_%1", "bits", "the same within the type, renormalised", Range::one},
    {"own_jsd", "bits", "the same of the layers' own scores, without the carried ones", Range::one},
    {"jsd_distance", "", "square root of the divergence in bits", Range::one},
};

// The quantities that are copied from a statistic.
constexpr std::pair<Quantity, QueryStatistic> kCopied[] = {
    {Quantity::entropy, QueryStatistic::entropy},
    {Quantity::entropy_0, QueryStatistic::entropy_0},
    {Quantity::entropy_1, QueryStatistic::entropy_1},
    {Quantity::mass_0, QueryStatistic::mass_0},
    {Quantity::mass_1, QueryStatistic::mass_1},
    {Quantity::member_1, QueryStatistic::member_1},
    {Quantity::distance_0, QueryStatistic::distance_0},
    {Quantity::logit_stddev, QueryStatistic::logit_stddev},
    {Quantity::carry_mean, QueryStatistic::carry_mean},
    {Quantity::carry_largest, QueryStatistic::carry_largest},
    {Quantity::jsd, QueryStatistic::jsd},
    {Quantity::jsd_0, QueryStatistic::jsd_0},
    {Quantity::jsd_1, QueryStatistic::jsd_1},
    {Quantity::own_jsd, QueryStatistic::own_jsd},
};

// An entropy as a share of that of equal probabilities; not defined where there is no choice.
double share_of_largest(double entropy, double visible_keys) {
  if (visible_keys <= 1 || std::isnan(entropy)) return kNan;
  return std::min(1.0, entropy / std::log(visible_keys));
}

void add_to(std::vector<double>& sums, std::int64_t layer, const std::vector<double>& more) {
  const std::size_t first = static_cast<std::size_t>(layer) * more.size();
  for (std::size_t i = 0; i < more.size(); ++i) sums[first + i] += more[i];
}

}  // namespace

const QuantityInfo& info_of(Quantity quantity) {
  return kInfo[static_cast<int>(quantity)];
}

std::string short_name(const sparse::AttentionOperator& op) {
  const std::string name = op.name;
  return name.substr(0, name.find('_'));
}

OperatorResults::OperatorResults(const LayerStatistics& first, std::int64_t layer_count, const ResultOptions& options)
    : name(short_name(*first.op)),
      layers(layer_count),
      heads(first.heads),
      labels(options.label_mass ? first.labels : 0),
      reach(options.reach),
      groups(first.groups),
      jsd_distance_(options.jsd_distance) {
  for (std::size_t t = 0; t < types.size(); ++t) {
    const std::string type = first.op->types[t].name;
    types[t] = type == "none" ? "" : type;
    if (labels > 0 && !first.label_mass[t].empty())
      label_mass[t].resize(static_cast<std::size_t>(layers) * first.label_mass[t].size());
  }
  distance_mass.resize(static_cast<std::size_t>(layers) * first.distance_mass.size());
  distance_queries.resize(static_cast<std::size_t>(groups * (2 * reach + 1)));
  group_queries.resize(static_cast<std::size_t>(groups));
  const double log_keys = std::log(std::max(2.0, options.most_keys));
  for (const QuantityInfo& info : kInfo) {
    const double upper = info.range == Range::log_keys ? log_keys : (info.range == Range::one ? 1.0 : 0.0);
    cells.insert(cells.end(), static_cast<std::size_t>(layers * heads * groups), Distribution(upper, options.exact));
  }
}

std::size_t OperatorResults::cell_index(Quantity quantity, std::int64_t layer, std::int64_t head, int group) const {
  return static_cast<std::size_t>(((static_cast<int>(quantity) * layers + layer) * heads + head) * groups + group);
}

std::string OperatorResults::name_of(Quantity quantity) const {
  std::string text = info_of(quantity).name;
  const std::size_t mark = text.find('%');
  if (mark == std::string::npos) return text;
  const std::string& type = types[text[mark + 1] == '0' ? 0 : 1];
  return type.empty() ? "" : text.substr(0, mark) + type;
}

bool OperatorResults::takes(Quantity quantity) const {
  if (quantity == Quantity::jsd_distance) return jsd_distance_;
  const bool of_type = std::string_view(info_of(quantity).name).find('%') != std::string_view::npos;
  return !of_type || quantity == Quantity::distance_0 || !types[1].empty();
}

bool OperatorResults::has(Quantity quantity) const {
  if (!takes(quantity)) return false;
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(cell_index(quantity, 0, 0, 0));
  return std::any_of(first, first + static_cast<std::ptrdiff_t>(layers * heads * groups),
                     [](const Distribution& cell) { return cell.count() > 0; });
}

std::int64_t OperatorResults::best_match(std::int64_t layer, std::int64_t head) const {
  std::int64_t best = 0;
  for (std::int64_t before = 1; before < heads; ++before) {
    if (compared(layer, head, before).mean() < compared(layer, head, best).mean()) best = before;
  }
  return best;
}

void OperatorResults::add_query(const LayerStatistics& of, const BatchQueries& from, std::int64_t head,
                                std::int64_t i) {
  const std::uint8_t bits = from.bits[static_cast<std::size_t>(i)];
  const auto add = [&](Quantity quantity, double value) {
    if (!takes(quantity)) return;
    for (int g = 0; g < groups; ++g) {
      if ((bits >> g & 1) != 0) cells[cell_index(quantity, of.layer, head, g)].add(value);
    }
  };
  const double visible = of.at(head, i, QueryStatistic::visible);
  for (const auto& [quantity, statistic] : kCopied) add(quantity, of.at(head, i, statistic));
  add(Quantity::entropy_normalised, share_of_largest(of.at(head, i, QueryStatistic::entropy), visible));
  if (!types[1].empty()) {
    const double keys = static_cast<double>(from.visible_1[static_cast<std::size_t>(i)]);
    const auto normalised = [&](QueryStatistic entropy, double seen) {
      return share_of_largest(of.at(head, i, entropy), seen);
    };
    add(Quantity::entropy_normalised_0, normalised(QueryStatistic::entropy_0, visible - keys));
    add(Quantity::entropy_normalised_1, normalised(QueryStatistic::entropy_1, keys));
  }
  // A difference of two sums, clamped to 0 because of rounding.
  const double member = of.at(head, i, QueryStatistic::member_1);
  add(Quantity::other_1, std::isnan(member) ? kNan : std::max(0.0, of.at(head, i, QueryStatistic::mass_1) - member));
  add(Quantity::jsd_distance, std::sqrt(of.at(head, i, QueryStatistic::jsd)));
  add(Quantity::one_hot, of.at(head, i, QueryStatistic::largest) > kOneHot ? 1.0 : 0.0);
  for (std::int64_t before = 0; before < heads && !of.jsd_of_heads.empty(); ++before) {
    const std::int64_t row = (head * heads + before) * of.queries + i;
    heads_compared[static_cast<std::size_t>((of.layer * heads + head) * heads + before)].add(
        of.jsd_of_heads[static_cast<std::size_t>(row)]);
  }
}

void OperatorResults::add(const LayerStatistics& of, const BatchQueries& from) {
  carries = carries || of.carries;
  if (!of.jsd_of_heads.empty() && heads_compared.empty()) {
    heads_compared.assign(static_cast<std::size_t>(layers * heads * heads), Distribution(1.0, false));
  }
  // Each head has its own cells, so heads run on threads, with queries in order.
  parallel_for(heads, [&](std::int64_t head) {
    for (std::int64_t i = 0; i < of.queries; ++i) {
      if (of.at(head, i, QueryStatistic::visible) == 0) continue;
      if (std::isnan(of.at(head, i, QueryStatistic::entropy))) {
        const auto b = std::upper_bound(from.offsets.begin(), from.offsets.end(), i) - from.offsets.begin() - 1;
        fail("etc analyze", "{} attention of layer {}, head {}, example {}: expected probabilities, got nan", name,
             of.layer, head, from.numbers[static_cast<std::size_t>(b)]);
      }
      add_query(of, from, head, i);
    }
  });
  for (std::size_t t = 0; t < label_mass.size(); ++t) {
    if (!label_mass[t].empty()) add_to(label_mass[t], of.layer, of.label_mass[t]);
  }
  add_to(distance_mass, of.layer, of.distance_mass);
  if (of.layer != 0) return;
  queries += of.queries;
  for (std::int64_t i = 0; i < of.queries; ++i) unseen += of.at(0, i, QueryStatistic::visible) == 0 ? 1 : 0;
}

void OperatorResults::add_queries(const BatchQueries& from) {
  for (std::size_t b = 0; b + 1 < from.offsets.size(); ++b) {
    const std::int64_t length = from.offsets[b + 1] - from.offsets[b];
    for (std::int64_t i = 0; i < length; ++i) {
      const std::uint8_t bits = from.bits[static_cast<std::size_t>(from.offsets[b] + i)];
      for (int g = 0; g < groups; ++g) {
        if ((bits >> g & 1) == 0) continue;
        ++group_queries[static_cast<std::size_t>(g)];
        const std::int64_t first = std::max(-reach, -i), last = std::min(reach, length - 1 - i);
        for (std::int64_t d = first; d <= last; ++d) {
          ++distance_queries[static_cast<std::size_t>(g * (2 * reach + 1) + d + reach)];
        }
      }
    }
  }
}

std::vector<std::int64_t> by_median_entropy(const OperatorResults& results, std::int64_t layer) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(results.heads));
  std::iota(order.begin(), order.end(), 0);
  const auto median = [&](std::int64_t head) { return results.cell(Quantity::entropy, layer, head).quantile(0.5); };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return median(a) < median(b); });
  return order;
}

}  // namespace etc::analyze
