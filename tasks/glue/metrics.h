// The metrics of the GLUE benchmark (dense-transformer 4.4).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tasks/glue/data_sets.h"

namespace etc::glue {

using Classes = std::span<const std::int64_t>;
using Scores = std::span<const double>;

// Labels and predictions have the same length, at least 1.
double accuracy(Classes labels, Classes predictions);  // share of equal ones
double f1(Classes labels, Classes predictions);        // 2TP/(2TP + FP + FN) of class 1; 0 when that is 0/0

// Matthews' correlation in its form for any number of classes K (Gorodkin 2004); for two it is
// (TP·TN − FP·FN)/sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)). 0 when the root is.
//   (c·s − Σ_k p_k t_k)/sqrt((s² − Σ p_k²)(s² − Σ t_k²))   s rows, c of them right; p_k predicted as k, t_k labelled k
double matthews(Classes labels, Classes predictions);

// Covariance over the product of the standard deviations; nan when either side is constant.
double pearson(Scores labels, Scores predictions);
// Pearson's correlation of the ranks; equal values get the mean of their ranks.
double spearman(Scores labels, Scores predictions);

// (name, value) pairs; the first one selects the best checkpoint. Predictions and labels are classes; for a regression,
// scores. A nan gives a warning.
struct Outcomes {
  std::vector<std::int64_t> labels, predictions;
  std::vector<double> gold_scores, scores;
};
std::vector<std::pair<std::string, double>> measured(const Outcomes& outcomes, const DataSetInfo& info);

// The benchmark's overall score as in the RealFormer paper (He et al. 2021, Table 4): the mean over nine rows of the mean
// of each row's metrics. MNLI-m and MNLI-mm are two rows, WNLI is left out. Throws Error naming the rows that are missing
// or not among the nine.
inline constexpr std::size_t kOverallRows = 9;
double nine_row_overall(const std::map<std::string, std::vector<double>>& rows);

}  // namespace etc::glue
