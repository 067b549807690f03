// An open regular file read at any position; safe for several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc {

class InputFile : NotCopied {
 public:
  explicit InputFile(const std::filesystem::path& path);  // throws Error: cannot be opened, not a regular file
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  // Fills `out` with `size` bytes from `begin` on. Throws Error when the file does not hold them.
  void read(std::uint64_t begin, std::uint64_t size, void* out) const;
  // At most `size` bytes: fewer at the file's end.
  std::string read_up_to(std::uint64_t begin, std::uint64_t size) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace etc
