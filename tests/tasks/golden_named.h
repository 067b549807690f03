// Selects the golden files of a task by their names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/folders.h"

namespace etc::test {

// Files of the golden folder with this extension whose name holds `part`, sorted.
inline std::vector<std::filesystem::path> golden_named(const std::string& part, const std::string& extension) {
  std::vector<std::filesystem::path> files = golden_files(extension);
  std::erase_if(files, [&](const auto& path) { return path.filename().string().find(part) == std::string::npos; });
  return files;
}

}  // namespace etc::test
