// Whether a path still leads to an open file.
#pragma once

#include <filesystem>

namespace etc {

// Whether `path`, with symbolic links followed, is the file open as `descriptor`. False if the path does not exist or
// the file behind it has been replaced.
bool leads_to(const std::filesystem::path& path, int descriptor);

}  // namespace etc
