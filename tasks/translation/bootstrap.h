// Paired bootstrap of two systems' BLEU (Koehn, "Statistical Significance Tests for Machine Translation Evaluation",
// 2004), with sacreBLEU 2's p-value.
#pragma once

#include <cstdint>
#include <span>

#include "tasks/translation/bleu.h"

namespace etc::translation {

struct BootstrapOptions {
  std::int64_t resamples = 1000;
  std::uint64_t seed = 12345;
};

struct PairedBootstrap {
  double system = 0, baseline = 0;  // BLEU of all segments, percent
  // The difference system − baseline over the resamples: its mean and its 2.5 % and 97.5 % quantiles.
  double mean_difference = 0, low_difference = 0, high_difference = 0;
  double wins = 0;  // share of the resamples in which the system is better
  // (1 + number of resamples whose difference deviates from the mean by more than the real one deviates from 0) /
  // (1 + resamples)
  double p_value = 1;
};

// Each resample draws, with replacement, as many segments as the corpus has, the same ones for both systems: segment `draw`
// of resample r is a function of (seed, r, draw) alone. system, baseline: results of count_segments() with equal options.
// Throws Error when they have different numbers of segments or none. Same results for any thread count.
PairedBootstrap paired_bootstrap(std::span<const BleuCounts> system, std::span<const BleuCounts> baseline,
                                 const BleuOptions& options, const BootstrapOptions& bootstrap);

}  // namespace etc::translation
