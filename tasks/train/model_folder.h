// Resolves the `--model` argument of a user: a model folder, or a run, which stands for its best checkpoint.
#pragma once

#include <filesystem>

namespace etc {

// A model folder is returned as it is; for a run's folder, its `best`, with a log message. Anything else is returned
// unchanged, so that the code that opens it reports what is missing. Throws Error if a run has no `best` yet.
std::filesystem::path model_folder(const std::filesystem::path& given);

}  // namespace etc
