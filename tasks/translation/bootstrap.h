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
  // Of the difference system − baseline over the resamples: its mean and the bounds that 2.5 % lie below and above.
  double mean_difference = 0, low_difference = 0, high_difference = 0;
  double wins = 0;  // share of the resamples where the system is better
  // (1 + resamples whose difference departs from the mean by more than the real one departs from 0) / (1 + resamples)
  double p_value = 1;
};

// Each resample draws as many segments as there are, with replacement, the same for both systems: segment `draw` of
// resample r is a function of (seed, r, draw) alone. counts of both: of count_segments(), with equal options. Throws
// Error when the two have different numbers of segments or none. Equal numbers for any count of threads.
PairedBootstrap paired_bootstrap(std::span<const BleuCounts> system, std::span<const BleuCounts> baseline,
                                 const BleuOptions& options, const BootstrapOptions& bootstrap);

}  // namespace etc::translation
