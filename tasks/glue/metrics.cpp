#include "tasks/glue/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"

namespace etc::glue {

namespace {

double mean(Scores values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool is_constant(Scores values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

// Ranks from 1; equal values get the mean of their ranks.
std::vector<double> ranks(Scores values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double rank = static_cast<double>(first + end + 1) / 2;
    for (std::size_t i = first; i < end; ++i) result[order[i]] = rank;
  }
  return result;
}

const std::vector<std::string>& nine_rows() {
  static const std::vector<std::string> kRows = {"MNLI-m", "MNLI-mm", "QQP",  "QNLI", "SST-2",
                                                 "CoLA",   "STS-B",   "MRPC", "RTE"};
  return kRows;
}

}  // namespace

double accuracy(Classes labels, Classes predictions) {
  double right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += labels[i] == predictions[i] ? 1 : 0;
  return right / static_cast<double>(labels.size());
}

double f1(Classes labels, Classes predictions) {
  double both = 0, either = 0;  // TP, 2TP + FP + FN
  for (std::size_t i = 0; i < labels.size(); ++i) {
    both += labels[i] == 1 && predictions[i] == 1 ? 1 : 0;
    either += (labels[i] == 1 ? 1 : 0) + (predictions[i] == 1 ? 1 : 0);
  }
  return either == 0 ? 0 : 2 * both / either;
}

double matthews(Classes labels, Classes predictions) {
  std::map<std::int64_t, double> predicted, present;
  double right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ++predicted[predictions[i]];
    ++present[labels[i]];
    right += labels[i] == predictions[i] ? 1 : 0;
  }
  const auto rows = static_cast<double>(labels.size());
  double products = 0, predicted_squares = 0, present_squares = 0;
  for (const auto& [k, count] : predicted) {
    predicted_squares += count * count;
    products += present.contains(k) ? count * present[k] : 0;
  }
  for (const auto& [k, count] : present) present_squares += count * count;
  const double root = std::sqrt((rows * rows - predicted_squares) * (rows * rows - present_squares));
  return root == 0 ? 0 : (right * rows - products) / root;
}

double pearson(Scores labels, Scores predictions) {
  if (is_constant(labels) || is_constant(predictions)) return std::numeric_limits<double>::quiet_NaN();
  const double x_mean = mean(labels), y_mean = mean(predictions);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double x = labels[i] - x_mean, y = predictions[i] - y_mean;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  return xy / (std::sqrt(xx) * std::sqrt(yy));
}

double spearman(Scores labels, Scores predictions) {
  return pearson(ranks(labels), ranks(predictions));
}

std::vector<std::pair<std::string, double>> measured(const Outcomes& outcomes, const DataSetInfo& info) {
  const auto& [labels, predictions, gold, scores] = outcomes;
  switch (info.measures) {
    case Measures::accuracy:
      return {{"accuracy", accuracy(labels, predictions)}};
    case Measures::accuracy_f1:
      return {{"accuracy", accuracy(labels, predictions)}, {"f1", f1(labels, predictions)}};
    case Measures::matthews:
      return {{"matthews", matthews(labels, predictions)}};
    case Measures::correlations:
      break;
  }
  const double linear = pearson(gold, scores);
  if (std::isnan(linear)) {
    log::warn("{}: the correlations are nan: all {} are equal", info.name,
              is_constant(scores) ? "predictions" : "labels");
  }
  return {{"pearson", linear}, {"spearman", spearman(gold, scores)}};
}

double nine_row_overall(const std::map<std::string, std::vector<double>>& rows) {
  double sum = 0;
  for (const std::string& name : nine_rows()) {
    const auto found = rows.find(name);
    if (found == rows.end() || found->second.empty()) {
      fail("glue", "the overall score needs the rows {}; {} is missing", fmt::join(nine_rows(), ", "), name);
    }
    sum += mean(found->second);
  }
  for (const auto& [name, values] : rows) {
    const auto& known = nine_rows();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail("glue", "the overall score has the rows {}; {} is none of them", fmt::join(known, ", "), name);
    }
  }
  return sum / static_cast<double>(nine_rows().size());
}

}  // namespace etc::glue
