#include "etc_core/checkpoint/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "etc_core/base/error.h"

namespace etc {

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(path.string(), "cannot open: {}", std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail(path.string(), "expected a regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::require(std::uint64_t begin, std::uint64_t size, std::uint64_t of) const {
  if (begin > of || size > of - begin) {
    fail(path_.string(), "expected {} bytes at {}, the file has {} (cut off?)", size, begin, of);
  }
}

void InputFile::read(std::uint64_t begin, std::uint64_t size, void* out) const {
  require(begin, size, size_);
  auto* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_, to, size, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_.string(), "cannot read: {}", std::strerror(errno));
    if (got == 0) fail(path_.string(), "cut off while it was read");
    to += got;
    begin += static_cast<std::uint64_t>(got);
    size -= static_cast<std::uint64_t>(got);
  }
}

std::string InputFile::read_up_to(std::uint64_t begin, std::uint64_t size) const {
  std::string bytes(begin < size_ ? std::min(size, size_ - begin) : 0, '\0');
  read(std::min(begin, size_), bytes.size(), bytes.data());
  return bytes;
}

std::shared_ptr<const std::byte> InputFile::map(std::uint64_t begin, std::uint64_t size) const {
  require(begin, size, size_);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(path_.string(), "cannot read its size: {}", std::strerror(errno));
  require(begin, size, static_cast<std::uint64_t>(status.st_size));
  const std::uint64_t before = begin % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));  // maps start at a page
  const std::size_t length = before + size;
  // MAP_POPULATE maps all pages at once instead of one page fault per page.
  void* const mapped =
      ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_POPULATE, descriptor_, static_cast<off_t>(begin - before));
  if (mapped == MAP_FAILED) return nullptr;
  const std::shared_ptr<const void> pages(mapped, [length](void* all) { ::munmap(all, length); });
  return {pages, static_cast<const std::byte*>(mapped) + before};
}

}  // namespace etc
