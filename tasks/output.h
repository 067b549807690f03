// Destinations of results: a file written completely or not at all, or standard output.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "etc_core/base/files.h"

namespace etc {

// Standard output, to which every result of a command is written. Throws Error "standard output: cannot write: <why>"
// (disk full, closed pipe); errors of buffered output appear at the latest in flush_standard_output(), which main
// calls.
void write_standard_output(std::string_view bytes);
void flush_standard_output();

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_standard_output(fmt::format(format, std::forward<Args>(args)...));
}

class Output {
 public:
  // "-": standard output, written immediately. Otherwise a file (AtomicFile) that exists only after finish().
  explicit Output(const std::filesystem::path& target);
  void write(std::string_view bytes);  // throws Error (disk full, closed pipe)
  void finish();

 private:
  std::unique_ptr<AtomicFile> file_;  // null: standard output
};

}  // namespace etc
