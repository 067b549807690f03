// Stops a preparation of several inputs after its parts have been written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"

namespace etc::test {

// Calls run(), which prepares into `output`, with a folder in the place of its report, so that it fails after writing
// its parts. Returns the remaining part files with this ending.
template <typename Run>
std::vector<std::filesystem::path> stopped_parts(const std::filesystem::path& output,
                                                 const std::filesystem::path& report, const std::string& ending,
                                                 const Run& run) {
  std::filesystem::remove(report);
  std::filesystem::create_directories(report);
  CHECK_THROWS_AS(run(), Error);
  std::filesystem::remove_all(report);
  std::vector<std::filesystem::path> parts;
  for (const auto& entry : std::filesystem::directory_iterator(output.string() + ".parts")) {
    if (entry.path().string().ends_with(ending)) parts.push_back(entry.path());
  }
  return parts;
}

}  // namespace etc::test
