// The distribution of one quantity over tokens, in memory that does not grow with their number.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace etc::analyze {

inline constexpr int kBins = 512;
inline constexpr std::array<double, 5> kQuantiles{0.05, 0.25, 0.5, 0.75, 0.95};

// Values that were not numbers (a quantity that is not defined for a token) are counted apart.
class Distribution {
 public:
  static constexpr std::int64_t kKept = 100000;

  Distribution() = default;
  // Bins divide [0, upper] evenly; values beyond count in the last one; 0: no bins, so no quantiles. exact: up to kKept
  // values are kept (of more a sample drawn by their number in order), and quantiles are theirs.
  Distribution(double upper, bool exact) : upper_(upper), exact_(exact) {}

  void add(double value);

  std::int64_t count() const { return count_; }
  std::int64_t skipped() const { return skipped_; }
  double mean() const { return count_ > 0 ? mean_ : kNone; }
  double variance() const;  // population
  double least() const { return count_ > 0 ? least_ : kNone; }
  double largest() const { return count_ > 0 ? largest_ : kNone; }
  double upper() const { return upper_; }
  // At position q·(count-1) of the values in order. From bins, whose values are taken to lie evenly: off by a bin at
  // most, and within least() … largest(). Nan without values, or without bins and kept values.
  double quantile(double q) const;
  const std::vector<std::uint32_t>& bins() const { return bins_; }  // empty: no value yet

 private:
  static constexpr double kNone = __builtin_nan("");
  double quantile_of_bins(double position) const;

  double upper_ = 0;
  bool exact_ = false;
  std::int64_t count_ = 0, skipped_ = 0;
  double mean_ = 0, squares_ = 0, least_ = 0, largest_ = 0;
  std::vector<std::uint32_t> bins_;
  std::vector<float> kept_;
};

}  // namespace etc::analyze
