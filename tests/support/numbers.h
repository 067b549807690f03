// Numbers for operator tests: reproducible random values, arrays with guard zones, comparisons that report where they fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace etc::test {

// Values in [-size, size), a pure function of (count, seed).
std::vector<float> random_floats(std::int64_t count, std::uint64_t seed, float size = 1.0f);

// Ids in [0, limit), a pure function of (count, seed).
std::vector<std::int32_t> random_ids(std::int64_t count, std::int32_t limit, std::uint64_t seed);

// random_floats times powers of ten from 1e-6 to 1e6, with large differences between neighbours; every 23rd is 0.
std::vector<float> mixed_floats(std::int64_t count, std::uint64_t seed);

// An output array of an operator between two guard zones that the operator must not change.
class Guarded {
 public:
  // All elements start as `initial`.
  explicit Guarded(std::int64_t size, float initial = 0.0f);
  // Elements start as `initial`.
  explicit Guarded(const std::vector<float>& initial);
  float* data();
  std::int64_t size() const { return size_; }
  std::vector<float> values() const;
  bool guards_intact() const;

 private:
  std::int64_t size_;
  std::vector<float> all_;
};

// True if all elements are equal within the tolerance (nan equals nan); otherwise prints `what`, the worst index, both
// values and the tolerance. The tolerance of element i is relative·|expected_i| + absolute.
bool near_all(const std::string& what, const std::vector<float>& got, const std::vector<double>& expected,
              double absolute, double relative = 0);

// The same, with tolerances_i as the tolerance of element i; 0: must be equal. For sums that cancel, because their rounding
// errors are relative to the sum of the terms' magnitudes.
bool near_each(const std::string& what, const std::vector<float>& got, const std::vector<double>& expected,
               const std::vector<double>& tolerances);

bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

// Runs make() with 1, 2 and 4 threads; true if all three results have the same bits. Afterwards the thread count is 2.
bool same_bits_for_any_thread_count(const std::function<std::vector<float>()>& make);

}  // namespace etc::test
