// What a person names as a model: a model folder, or a run, whose best checkpoint is meant.
#pragma once

#include <filesystem>

namespace etc {

// The model folder itself; of a run's folder its `best`, and the log says so. Anything else is returned as it is: who
// reads it says what is missing. Throws Error where a run has no `best` yet.
std::filesystem::path model_folder(const std::filesystem::path& given);

}  // namespace etc
