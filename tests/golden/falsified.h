// A copy of a golden file that a test changes on purpose (support/h5_edit.h).
#pragma once

#include <filesystem>

#include "tests/support/folders.h"

namespace etc::test {

struct Falsified {
  explicit Falsified(const std::filesystem::path& original) : path(folder / original.filename()) {
    std::filesystem::copy_file(original, path);
    std::filesystem::permissions(path, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  }
  TemporaryFolder folder;
  std::filesystem::path path;
};

}  // namespace etc::test
