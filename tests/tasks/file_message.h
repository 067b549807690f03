// What reading a bad file says.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/folders.h"

namespace etc::test {

// The message, from the file's name on, of reading a file of this name and text; empty when it is read.
inline std::string message_of_file(const std::string& name, const std::string& text,
                                   const std::function<void(const std::filesystem::path& path)>& read) {
  const TemporaryFolder folder;
  write_file_atomically(folder / name, text);
  try {
    read(folder / name);
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(what.find(name));
  }
  return "";
}

}  // namespace etc::test
