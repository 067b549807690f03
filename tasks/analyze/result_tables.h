// The numerical results as CSV tables.
#pragma once

#include <filesystem>

#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

// Writes to the folder: statistics.csv, label_mass.csv, distance_mass.csv, best_match.csv (if all heads are compared),
// relative_tables.csv (first layer), gradient_norms.csv (if requested).
void write_csv(const ModelAnalysis& model, const std::filesystem::path& folder);

}  // namespace etc::analyze
