// Whether an existing folder may be replaced by a new analysis.
#pragma once

#include <filesystem>

namespace etc::analyze {

// Does nothing when the folder is missing or empty. Otherwise throws UsageError unless `overwrite` is set and the folder
// holds an earlier analysis and nothing else: every file and folder in it has a name that an analysis writes.
void require_replaceable(const std::filesystem::path& folder, bool overwrite);

}  // namespace etc::analyze
