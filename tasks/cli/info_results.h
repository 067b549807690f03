// `etc info` for results that other programs read, too: NumPy arrays and the folders of `etc analyze`.
#pragma once

#include <filesystem>

#include "etc_core/base/json_fwd.h"

namespace etc::cli {

// A file *.npy: type and shape. Reads its header only. Throws Error for a malformed header, and for a file that is
// shorter or longer than its numbers.
void describe_npy(const std::filesystem::path& path);

// What was analysed (models, data, tokens) and which statistics there are; path: the folder or its summary.json. Throws
// Error for members of another type.
void describe_analysis(const std::filesystem::path& path, const Json& summary);

}  // namespace etc::cli
