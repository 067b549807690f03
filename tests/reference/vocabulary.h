// Softmax cross-entropy of one row over a vocabulary, in double. Shares no code with the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace etc::test {

struct ReferenceVocabularyRow {
  double loss = 0;               // lse − z_label
  double smoothed = 0;           // (1−ε)·loss + ε·(lse − mean z)
  double best_log_p = 0;         // largest z − lse
  std::int64_t best = 0;         // the first column of the largest z
  std::vector<double> gradient;  // [V] scale·(exp(z_v − lse) − (1−ε)·[v = label] − ε/V)
};

// z [V]: a row of logits; label 0 … V−1; smoothing ε.
inline ReferenceVocabularyRow reference_vocabulary_row(const float* z, std::int64_t vocabulary, std::int32_t label,
                                                       double scale, double smoothing = 0) {
  ReferenceVocabularyRow row;
  row.best = std::max_element(z, z + vocabulary) - z;
  const double largest = static_cast<double>(z[row.best]);
  double sum = 0, total = 0;
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    sum += std::exp(static_cast<double>(z[v]) - largest);
    total += static_cast<double>(z[v]);
  }
  const double lse = largest + std::log(sum), each = smoothing / static_cast<double>(vocabulary);
  row.loss = lse - static_cast<double>(z[label]);
  row.smoothed = (1 - smoothing) * row.loss + smoothing * (lse - total / static_cast<double>(vocabulary));
  row.best_log_p = largest - lse;
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    row.gradient.push_back(scale *
                           (std::exp(static_cast<double>(z[v]) - lse) - (v == label ? 1 - smoothing : 0) - each));
  }
  return row;
}

}  // namespace etc::test
