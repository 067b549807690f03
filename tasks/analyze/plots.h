// The plots of an analysis, as SVG files.
#pragma once

#include <filesystem>
#include <span>

#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

enum class LogBase { nats, bits };

// The plots of one model, in its folder: violins_entropy_OP.svg (heads sorted by median entropy, beside it the normalised
// entropy), violins_jsd_OP.svg (heads not sorted; beside it the best matching head if all were compared),
// entropy_OP.svg, mass_OP.svg, label_mass_TYPE.svg, distance_mass_TYPE.svg, carry_OP.svg; OP: operator. base: logarithm of
// the entropies, to which the colour bounds refer as well. gradient_norms.svg if requested.
void write_plots(const ModelAnalysis& model, const std::filesystem::path& folder, LogBase base);

// The first layer's relative-position tables by distance (relative_PART.svg), the norms of their rows
// (relative_sizes_PART.svg), and the attention between an example's first tokens in this layer (first_tokens.svg).
void write_relative_plots(const ModelAnalysis& model, const std::filesystem::path& folder);

// Comparison of several models with these names: compare_{entropy,entropy_variance,jsd,own_jsd,one_hot,carry_mean}_OP.svg
// and, if requested, compare_gradient_{query_key,rest}.svg, with a line per model over the layers.
void write_comparison(std::span<const ModelAnalysis> models, const std::vector<std::string>& names,
                      const std::filesystem::path& folder);

}  // namespace etc::analyze
