// An open regular file, read at any position or mapped; safe for several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
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
  // Maps `size` > 0 bytes from `begin` on as read-only memory (mmap, private), which may outlive this object and lives
  // until the last handle is gone. Null if the system cannot map it (a file system without mmap, no address space
  // left). Throws Error when the file did not hold these bytes when it was opened, or does not any more. While it is
  // mapped, the file must not be shortened or written: changes may become visible, and reading a part that was cut off
  // raises SIGBUS. Replacing the file by rename, as all writers of this project do, has no effect on the mapping.
  std::shared_ptr<const std::byte> map(std::uint64_t begin, std::uint64_t size) const;

 private:
  void require(std::uint64_t begin, std::uint64_t size, std::uint64_t of) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace etc
