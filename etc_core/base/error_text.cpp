#include "etc_core/base/error_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <system_error>

namespace etc {

namespace {

// The failed action. The library's text contains it ("cannot rename"), except for queries about a path.
std::string action_of(const std::string& words, const std::string& reason) {
  const std::size_t begin = words.find("cannot "), end = words.find(": " + reason);
  if (begin == std::string::npos || end == std::string::npos || begin > end) return "cannot look up";
  return words.substr(begin, end - begin);
}

// The library's texts of these do not say what failed ("std::bad_alloc", "Resource temporarily unavailable").
std::string text_of_system(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
  const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
  if (of_system == nullptr || of_system->code() != std::errc::resource_unavailable_try_again) return error.what();
  return fmt::format("cannot start a thread: {} (a limit of processes or of memory)", of_system->code().message());
}

}  // namespace

std::string error_text(const std::exception& error) {
  const auto* const of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (of_files == nullptr) return text_of_system(error);
  if (of_files->path1().empty()) return error.what();
  const std::string reason = of_files->code().message();
  return fmt::format("{}: {}: {}", of_files->path1().string(), action_of(error.what(), reason), reason);
}

}  // namespace etc
