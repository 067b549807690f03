#include "tasks/translation/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"

namespace etc::translation {

namespace {

constexpr std::uint64_t kBootstrapStream = 0x626c6575ull;  // "bleu"

double score_of(std::span<const BleuCounts> segments, const BleuOptions& options) {
  BleuCounts sums(options.max_order);
  for (const BleuCounts& counts : segments) sums.add(counts);
  return bleu_of(sums, options).score;
}

// system − baseline of one resample.
double resampled_difference(std::span<const BleuCounts> system, std::span<const BleuCounts> baseline,
                            const BleuOptions& options, std::uint64_t key) {
  BleuCounts sums(options.max_order), baseline_sums(options.max_order);
  for (std::size_t draw = 0; draw < system.size(); ++draw) {
    const std::uint64_t bits = philox({static_cast<std::uint32_t>(draw), 0, 0, 0}, key)[0];
    const std::size_t segment = (bits * system.size()) >> 32;
    sums.add(system[segment]);
    baseline_sums.add(baseline[segment]);
  }
  return bleu_of(sums, options).score - bleu_of(baseline_sums, options).score;
}

// The quantile `share` of sorted values.
double quantile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(share * last))];
}

}  // namespace

PairedBootstrap paired_bootstrap(std::span<const BleuCounts> system, std::span<const BleuCounts> baseline,
                                 const BleuOptions& options, const BootstrapOptions& bootstrap) {
  if (system.size() != baseline.size() || system.empty()) {
    fail("bootstrap", "expected two systems of the same segments, got {} and {}", system.size(), baseline.size());
  }
  if (bootstrap.resamples < 1) fail("bootstrap", "expected at least one resample, got {}", bootstrap.resamples);
  PairedBootstrap result;
  result.system = score_of(system, options);
  result.baseline = score_of(baseline, options);
  std::vector<double> differences(static_cast<std::size_t>(bootstrap.resamples));
  const std::uint64_t stream = mix_key(bootstrap.seed, kBootstrapStream);
  parallel_for(bootstrap.resamples, [&](std::int64_t r) {
    const std::uint64_t key = mix_key(stream, static_cast<std::uint64_t>(r));
    differences[static_cast<std::size_t>(r)] = resampled_difference(system, baseline, options, key);
  });
  const auto count = static_cast<double>(differences.size());
  result.mean_difference = std::accumulate(differences.begin(), differences.end(), 0.0) / count;
  const double real = std::abs(result.system - result.baseline);
  std::int64_t farther = 0, better = 0;
  for (const double difference : differences) {
    farther += std::abs(difference - result.mean_difference) > real ? 1 : 0;
    better += difference > 0 ? 1 : 0;
  }
  std::sort(differences.begin(), differences.end());
  result.low_difference = quantile(differences, 0.025);
  result.high_difference = quantile(differences, 0.975);
  result.wins = static_cast<double>(better) / count;
  result.p_value = static_cast<double>(farther + 1) / (count + 1);
  return result;
}

}  // namespace etc::translation
