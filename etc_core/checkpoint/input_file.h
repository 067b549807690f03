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
  // `size` > 0 bytes from `begin` on as read-only memory (mmap, private), which outlives this object: until the last
  // handle is gone; null where the system does not map it (a file system without mmap, no address space left). Throws
  // Error when the file did not hold them when it was opened, or holds fewer by now. While it is mapped nobody may
  // shorten the file or write into it: what was changed may be seen, and reading what was cut off is a SIGBUS. Replacing
  // the file by another of its name (rename, as all writers here do) changes nothing.
  std::shared_ptr<const std::byte> map(std::uint64_t begin, std::uint64_t size) const;

 private:
  void require(std::uint64_t begin, std::uint64_t size, std::uint64_t of) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace etc
