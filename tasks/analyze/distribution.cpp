#include "tasks/analyze/distribution.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/random.h"

namespace etc::analyze {

void Distribution::add(double value) {
  if (std::isnan(value)) {
    ++skipped_;
    return;
  }
  least_ = count_ == 0 ? value : std::min(least_, value);
  largest_ = count_ == 0 ? value : std::max(largest_, value);
  ++count_;
  // Welford's update, since plain sums of squares would cancel.
  const double off = value - mean_;
  mean_ += off / static_cast<double>(count_);
  squares_ += off * (value - mean_);
  if (upper_ > 0) {
    if (bins_.empty()) bins_.resize(kBins);
    const double bin = std::clamp(value / upper_ * kBins, 0.0, kBins - 1.0);
    ++bins_[static_cast<std::size_t>(bin)];
  }
  if (!exact_) return;
  if (std::ssize(kept_) < kKept) {
    kept_.push_back(static_cast<float>(value));
    return;
  }
  // Reservoir sampling: each of n values is kept with probability kKept/n.
  const auto number = static_cast<std::uint64_t>(count_);
  const Philox4 bits = philox({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), 0, 0}, 0);
  const std::uint64_t place = ((std::uint64_t{bits[1]} << 32) | bits[0]) % number;
  if (place < static_cast<std::uint64_t>(kKept)) kept_[place] = static_cast<float>(value);
}

double Distribution::variance() const {
  return count_ > 0 ? squares_ / static_cast<double>(count_) : kNone;
}

double Distribution::value_of_rank(double rank) const {
  double before = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    const double own = bins_[bin];
    // The n values of a bin are assumed at the centres of n equal parts of it.
    if (rank <= before + own - 0.5 || (bin + 1 == bins_.size())) {
      const double within = own > 0 ? std::clamp((rank - before + 0.5) / own, 0.0, 1.0) : 0.0;
      return (static_cast<double>(bin) + within) * upper_ / kBins;
    }
    before += own;
  }
  return kNone;
}

double Distribution::quantile(double q) const {
  if (count_ == 0) return kNone;
  // Between the two values nearest to the place q·(n-1) in the sorted list.
  const auto between = [q](std::size_t values, const auto& value) {
    const double at = q * static_cast<double>(values - 1);
    const auto below = static_cast<std::size_t>(at);
    const double low = value(below), high = value(std::min(below + 1, values - 1));
    return low + (at - static_cast<double>(below)) * (high - low);
  };
  if (exact_) {
    std::vector<float> values = kept_;
    std::sort(values.begin(), values.end());
    return between(values.size(), [&](std::size_t i) { return static_cast<double>(values[i]); });
  }
  if (upper_ <= 0) return kNone;
  const double value = between(static_cast<std::size_t>(count_),
                               [&](std::size_t rank) { return value_of_rank(static_cast<double>(rank)); });
  return std::clamp(value, least_, largest_);
}

}  // namespace etc::analyze
