#include "tasks/pretrain/number_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace etc::pretrain {

namespace {

template <typename... Args>
[[noreturn]] void fail_reading(const std::filesystem::path& path, fmt::format_string<Args...> format, Args&&... args) {
  throw NumberFileError(path.string() + ": " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

RandomAccessFile::RandomAccessFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    const int reason = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    fail_reading(path_, "cannot open: {}", std::strerror(reason));
  }
  size_ = status.st_size;
}

RandomAccessFile::~RandomAccessFile() {
  ::close(descriptor_);
}

void RandomAccessFile::hold(std::int64_t& budget) {
  if (size_ == 0 || size_ > budget) return;
  auto whole = std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(size_));
  read(0, whole.get(), static_cast<std::size_t>(size_));
  held_ = std::move(whole);
  budget -= size_;
}

void RandomAccessFile::read(std::int64_t at, void* to, std::size_t size) const {
  if (held_ && at <= size_ && std::cmp_less_equal(size, size_ - at)) {
    std::memcpy(to, held_.get() + at, size);
    return;
  }
  auto* begin = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(descriptor_, begin, size, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading(path_, "cannot read: {}", std::strerror(errno));
    if (got == 0) fail_reading(path_, "expected {} more bytes at byte {}, the file ends", size, at);
    begin += got;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace etc::pretrain
