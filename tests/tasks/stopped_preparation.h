// A preparation of several inputs that ends when its parts are there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "tests/support/catch.h"

namespace etc::test {

// Calls run(), which prepares into `output`, while its report has no place: the parts' files with this ending that are
// left.
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
