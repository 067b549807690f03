// The numerical results in brief: summary.json.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

// Medians, variances and the numbers for checking the papers' statements about figures (analysis 4), one object per model.
Json summary_of(std::span<const ModelAnalysis> models);

// What a reader of a model's results should know: groups without queries, a single layer.
std::vector<std::string> notes_of(const ModelAnalysis& model);

}  // namespace etc::analyze
