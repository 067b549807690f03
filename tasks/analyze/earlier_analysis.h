// Whether an existing folder may be replaced by a new analysis.
#pragma once

#include <filesystem>

#include "etc_core/base/json_fwd.h"

namespace etc::analyze {

// Every analysis has this file; by it a folder is known as one.
inline constexpr const char* kSummaryFile = "summary.json";

// Whether a JSON document is that file of an analysis.
bool is_analysis(const Json& summary);

// Does nothing when the folder is missing or empty. Otherwise throws UsageError unless `overwrite` is set and the folder
// holds an earlier analysis and nothing else: every file and folder in it has a name that an analysis writes.
void require_replaceable(const std::filesystem::path& folder, bool overwrite);

}  // namespace etc::analyze
