// Whether an existing folder may be replaced by a converted or exported model.
#pragma once

#include <filesystem>

namespace etc {

// The program that wrote the weights of an exported BERT (etc convert --to bert), whose config.json does not show it.
// Stored in the weights' metadata and not in a separate file: a library that saves a trained model over the exported
// one would leave such a file in place, and replacing that model must stay refused.
inline constexpr const char* kWriterKey = "written_by";
inline constexpr const char* kBertWriter = "etc convert --to bert";

// Does nothing when the target is missing or an empty folder. Otherwise throws UsageError unless `overwrite` is set and
// the folder is a model directory (config.json with a section "model") or an exported model (etc_config.json, or
// weights with kBertWriter) with weights, and holds only files and folders that the program writes there. So a run's
// folder, notes beside a model, or another program's config.json and weights are never replaced. Throws Error when the
// target is not a folder.
void require_replaceable(const std::filesystem::path& target, bool overwrite);

}  // namespace etc
