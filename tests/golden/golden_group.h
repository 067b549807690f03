// Golden files that contain a certain group.
#pragma once

#include <string>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

// Calls check(file) for every golden file with this group; "skipped" without any.
template <typename Check>
void for_each_file_with(const std::string& group, Check&& check) {
  std::size_t files = 0;
  for (const std::filesystem::path& path : golden_files(".h5")) {
    const GoldenFile file(path);
    if (!file.has(group)) continue;
    CAPTURE(path.filename().string());
    check(file);
    ++files;
  }
  if (files == 0) skip("no golden files with a group " + group);
}

}  // namespace etc::test
