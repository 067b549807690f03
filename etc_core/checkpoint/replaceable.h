// Whether a folder that is there may be replaced by a converted or exported model.
#pragma once

#include <filesystem>

namespace etc {

// In the metadata of the weights of a BERT for others (etc convert --to bert), whose config.json has nothing of ours:
// who wrote them. Not in a file beside them: a library that saves a trained model over ours leaves that, and replacing
// its work must stay refused.
inline constexpr const char* kWriterKey = "written_by";
inline constexpr const char* kBertWriter = "etc convert --to bert";

// Does nothing when the target is missing or an empty folder. Otherwise throws UsageError unless `overwrite` is set and
// the folder is a model directory (config.json with a section "model") or an exported model (etc_config.json, or
// weights with kBertWriter) with weights, and holds no other file or folder than the program writes there: so neither a
// run's folder nor notes beside a model nor somebody else's config.json and weights are ever replaced. Throws Error
// when the target is no folder.
void require_replaceable(const std::filesystem::path& target, bool overwrite);

}  // namespace etc
