#include "etc_core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "etc_core/base/error.h"

namespace etc {

namespace {

[[noreturn]] void fail_io(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  fail(path.string(), "cannot {}: {}", action, std::strerror(code));
}

// Closes a descriptor on every way out.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) fail_io(path, "open");
  struct stat status {};
  if (::fstat(file.value, &status) != 0) fail_io(path, "read");
  if (S_ISDIR(status.st_mode)) fail(path.string(), "expected a file, got a folder");
  std::string bytes;
  if (S_ISREG(status.st_mode))
    bytes.reserve(std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), max_bytes));
  char block[65536];
  while (true) {
    const ssize_t got = ::read(file.value, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io(path, "read");
    if (got == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
    if (bytes.size() > max_bytes) fail(path.string(), "expected at most {} bytes, the file is larger", max_bytes);
  }
}

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  std::string pattern = target_.string() + ".XXXXXX.tmp";
  descriptor_ = ::mkstemps(pattern.data(), 4);
  if (descriptor_ < 0) fail_io(target_, "create");
  temporary_ = pattern;
  ::fchmod(descriptor_, 0644);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_io(target_, "write");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

void AtomicFile::commit() {
  // A writer that opened the temporary name itself (HDF5) may have replaced the bytes: sync by name, not descriptor.
  sync_path(temporary_);
  ::close(descriptor_);
  descriptor_ = -1;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_io(target_, "rename into place");
  temporary_.clear();
  sync_path(target_.has_parent_path() ? target_.parent_path() : std::filesystem::path("."));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void sync_path(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) fail_io(path, "open to sync");
  // Some file systems cannot sync folders; they say EINVAL, and there is nothing more to be done.
  if (::fsync(file.value) != 0 && errno != EINVAL && errno != EROFS) fail_io(path, "sync");
}

}  // namespace etc
