// A temporary folder and files with given texts in it, for tests of readers.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/folders.h"

namespace etc::test {

class WrittenFiles {
 public:
  // Returns the new file's path; `name` may contain an existing folder.
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, text);
    return folder_ / name;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace etc::test
