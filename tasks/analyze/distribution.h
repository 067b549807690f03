// The distribution of one quantity over tokens, in memory independent of the number of tokens.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace etc::analyze {

inline constexpr int kBins = 512;
inline constexpr std::array<double, 5> kQuantiles{0.05, 0.25, 0.5, 0.75, 0.95};

// Nan values (the quantity is not defined for a token) are counted separately.
class Distribution {
 public:
  static constexpr std::int64_t kKept = 100000;

  Distribution() = default;
  // Bins divide [0, upper] evenly; larger values count in the last bin; 0: no bins, so no quantiles. exact: up to kKept
  // values are kept, or a sample of them if there are more, drawn by a value's index; quantiles are computed from them.
  Distribution(double upper, bool exact) : upper_(upper), exact_(exact) {}

  void add(double value);

  std::int64_t count() const { return count_; }
  std::int64_t skipped() const { return skipped_; }
  double mean() const { return count_ > 0 ? mean_ : kNone; }
  double variance() const;  // population
  double least() const { return count_ > 0 ? least_ : kNone; }
  double largest() const { return count_ > 0 ? largest_ : kNone; }
  double upper() const { return upper_; }
  // The value at position q·(count-1) of the sorted values. From bins, whose values are assumed evenly spaced, the result is
  // off by at most one bin and within least() … largest(). Nan without values, or without bins and kept values.
  double quantile(double q) const;
  const std::vector<std::uint32_t>& bins() const { return bins_; }  // empty: no values

 private:
  static constexpr double kNone = __builtin_nan("");
  double value_of_rank(double rank) const;  // from the bins; rank 0: the least value

  double upper_ = 0;
  bool exact_ = false;
  std::int64_t count_ = 0, skipped_ = 0;
  double mean_ = 0, squares_ = 0, least_ = 0, largest_ = 0;
  std::vector<std::uint32_t> bins_;
  std::vector<float> kept_;
};

}  // namespace etc::analyze
