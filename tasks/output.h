// Where results go: a file that appears whole or not at all, or standard output.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "etc_core/base/files.h"

namespace etc {

class Output {
 public:
  // "-": standard output, written as it comes. Otherwise a file that exists only after finish().
  explicit Output(const std::filesystem::path& target);
  void write(std::string_view bytes);  // throws Error (disk full, closed pipe)
  void finish();

 private:
  std::unique_ptr<AtomicFile> file_;  // null: standard output
};

}  // namespace etc
