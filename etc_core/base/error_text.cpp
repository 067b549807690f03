#include "etc_core/base/error_text.h"

#include <fmt/format.h>

#include <filesystem>

namespace etc {

namespace {

// The failed action. The library's text contains it ("cannot rename"), except for queries about a path.
std::string action_of(const std::string& words, const std::string& reason) {
  const std::size_t begin = words.find("cannot "), end = words.find(": " + reason);
  if (begin == std::string::npos || end == std::string::npos || begin > end) return "cannot look up";
  return words.substr(begin, end - begin);
}

}  // namespace

std::string error_text(const std::exception& error) {
  const auto* const of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (of_files == nullptr || of_files->path1().empty()) return error.what();
  const std::string reason = of_files->code().message();
  return fmt::format("{}: {}: {}", of_files->path1().string(), action_of(error.what(), reason), reason);
}

}  // namespace etc
