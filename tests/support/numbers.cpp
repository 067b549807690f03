#include "tests/support/numbers.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"

namespace etc::test {

namespace {
constexpr std::int64_t kZone = 64;
constexpr float kMark = -1.2345e20f;
}  // namespace

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed, float size) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Philox4 bits = philox({static_cast<std::uint32_t>(i / 4), 0, 0, 1}, seed);
    values[i] = (2 * uniform_from_bits(bits[i % 4]) - 1) * size;
  }
  return values;
}

std::vector<std::int32_t> random_ids(std::int64_t count, std::int32_t limit, std::uint64_t seed) {
  std::vector<std::int32_t> ids;
  for (const float v : random_floats(count, seed)) {
    ids.push_back(static_cast<std::int32_t>((v + 1) / 2 * static_cast<float>(limit)));
  }
  return ids;
}

std::vector<float> mixed_floats(std::int64_t count, std::uint64_t seed) {
  constexpr float kPowers[] = {1e-6f, 1e6f, 1e-3f, 1e3f, 1.0f};
  std::vector<float> values = random_floats(count, seed);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 23 == 22 ? 0.0f : values[i] * kPowers[i % 5];
  return values;
}

Guarded::Guarded(std::int64_t size, float initial)
    : Guarded(std::vector<float>(static_cast<std::size_t>(size), initial)) {}

Guarded::Guarded(const std::vector<float>& initial)
    : size_(static_cast<std::int64_t>(initial.size())), all_(initial.size() + 2 * kZone, kMark) {
  std::copy(initial.begin(), initial.end(), all_.begin() + kZone);
}

float* Guarded::data() {
  return all_.data() + kZone;
}

std::vector<float> Guarded::values() const {
  return {all_.begin() + kZone, all_.end() - kZone};
}

bool Guarded::guards_intact() const {
  for (std::int64_t i = 0; i < kZone; ++i) {
    if (all_[static_cast<std::size_t>(i)] != kMark || all_[all_.size() - 1 - static_cast<std::size_t>(i)] != kMark) {
      return false;
    }
  }
  return true;
}

bool near_all(const std::string& what, const std::vector<float>& got, const std::vector<double>& expected,
              double absolute, double relative) {
  std::vector<double> tolerances;
  for (const double value : expected) tolerances.push_back(relative * std::fabs(value) + absolute);
  return near_each(what, got, expected, tolerances);
}

bool near_each(const std::string& what, const std::vector<float>& got, const std::vector<double>& expected,
               const std::vector<double>& tolerances) {
  if (got.size() != expected.size() || got.size() != tolerances.size()) {
    std::printf("%s: expected %zu elements and %zu tolerances, got %zu\n", what.c_str(), expected.size(),
                tolerances.size(), got.size());
    return false;
  }
  double worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = got[i];
    if (value == expected[i] || (std::isnan(value) && std::isnan(expected[i]))) continue;
    double excess = std::fabs(value - expected[i]) / tolerances[i];
    if (std::isnan(excess)) excess = INFINITY;  // a nan is always a difference, but would compare as false
    if (excess > worst) {
      worst = excess;
      where = i;
    }
  }
  if (worst <= 1) return true;
  std::printf("%s: worst at %zu of %zu: expected %.9g, got %.9g, %.3g times the tolerance %.3g\n", what.c_str(), where,
              got.size(), expected[where], static_cast<double>(got[where]), worst, tolerances[where]);
  std::fflush(stdout);
  return false;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

bool same_bits_for_any_thread_count(const std::function<std::vector<float>()>& make) {
  set_thread_count(1);
  const std::vector<float> one = make();
  bool same = true;
  for (const int threads : {4, 2}) {
    set_thread_count(threads);
    same = same && same_bits(one, make());
  }
  return same;
}

}  // namespace etc::test
