// Whether a folder that is there may be replaced by a converted or exported model.
#pragma once

#include <filesystem>

namespace etc {

// Does nothing when the target is missing or an empty folder. Otherwise throws UsageError unless `overwrite` is set and
// the folder is a model directory (config.json with a section "model") or an exported model (etc_config.json) with
// weights, and holds no other file or folder than the program writes there: so neither a run's folder nor notes beside
// a model nor somebody else's config.json and weights are ever replaced. Throws Error when the target is no folder.
void require_replaceable(const std::filesystem::path& target, bool overwrite);

}  // namespace etc
