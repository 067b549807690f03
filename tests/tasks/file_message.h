// Error messages for bad files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "etc_core/base/error.h"
#include "tests/support/folders.h"

namespace etc::test {

// The error message, starting at the file's name, of reading a file with this name and text; empty if reading succeeds.
inline std::string message_of_file(const std::string& name, const std::string& text,
                                   const std::function<void(const std::filesystem::path& path)>& read) {
  const TemporaryFolder folder;
  write_file(folder / name, text);
  try {
    read(folder / name);
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(what.find(name));
  }
  return "";
}

}  // namespace etc::test
