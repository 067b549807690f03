// The pictures of an analysis, as SVG files.
#pragma once

#include <filesystem>
#include <span>

#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

enum class LogBase { nats, bits };

// Of one model, into its folder: violins_entropy_OP.svg (heads sorted by median entropy, beside it the normalised
// entropy), violins_jsd_OP.svg (heads as they are, beside it the best matched head where all were compared),
// entropy_OP.svg, mass_OP.svg, label_mass_TYPE.svg, distance_mass_TYPE.svg, carry_OP.svg; OP: operator. base: of
// entropies, which their colours follow, too. gradient_norms.svg where they were asked for.
void write_plots(const ModelAnalysis& model, const std::filesystem::path& folder, LogBase base);

// The first layer's tables of relative positions, drawn by distance (relative_PART.svg), with the sizes of their rows
// (relative_sizes_PART.svg), and first_tokens.svg: whom the first tokens of an example attend to there.
void write_relative_plots(const ModelAnalysis& model, const std::filesystem::path& folder);

// Of several, whose names are given: compare_{entropy,entropy_variance,jsd,own_jsd,one_hot,carry_mean}_OP.svg, and where
// asked for compare_gradient_{query_key,rest}.svg, a line per model over the layers.
void write_comparison(std::span<const ModelAnalysis> models, const std::vector<std::string>& names,
                      const std::filesystem::path& folder);

}  // namespace etc::analyze
