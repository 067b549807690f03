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

// The file that belongs to golden file `path`, whose name holds `part`: that of the same name with the other name instead of
// the part ("nq_decode_2.h5": "nq_features_2.h5"), and without such a file `other` itself, "nq_features.h5".
inline std::filesystem::path golden_beside(const std::filesystem::path& path, const std::string& part,
                                           const std::filesystem::path& other) {
  std::string name = path.stem().string();
  name.replace(name.find(part), part.size(), other.stem().string());
  const auto beside = path.parent_path() / (name + other.extension().string());
  return std::filesystem::exists(beside) ? beside : path.parent_path() / other;
}

}  // namespace etc::test
