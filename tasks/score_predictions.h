// `etc eval --predictions P --gold G`: the official scores of a prediction file, without a model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/json.h"

namespace etc {

// Reads a prediction file of the task's official form and raw files with gold answers, and scores one by the other. The
// result has "task" and "metrics" (name → number); what more is in it, the task's evaluate() says. Throws UsageError on
// a task without official scores, Error naming file, place and id on bad files.
Json evaluate_predictions(const std::string& task, const std::filesystem::path& predictions,
                          const std::vector<std::filesystem::path>& gold);

}  // namespace etc
