#include "etc_core/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
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

enum class Claim { ours, taken, unknown };

// Takes the lock of an open temporary file. It ends with the process, however it ends, so a file without one is
// nobody's any more. A file that was renamed or removed between opening and locking is not there to be written.
Claim claim(int descriptor, const std::string& path) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? Claim::taken : Claim::unknown;
  struct stat held {
  }, there{};
  const bool same = ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
                    held.st_dev == there.st_dev && held.st_ino == there.st_ino;
  return same ? Claim::ours : Claim::taken;
}

struct Temporary {
  std::string path;
  int descriptor = -1;  // -1: errno says why
};

// "TARGET.partial.tmp", or with a number while other writers of the same target hold it. What a killed process left
// under that name is taken over, so it does not pile up.
Temporary open_temporary(const std::string& target) {
  constexpr int kMostWriters = 100;
  for (int number = 1; number <= kMostWriters; ++number) {
    Temporary file{target + ".partial" + (number > 1 ? std::to_string(number) : "") + ".tmp"};
    file.descriptor = ::open(file.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file.descriptor < 0 && (errno == EACCES || errno == ELOOP) && ::access(file.path.c_str(), F_OK) == 0) continue;
    if (file.descriptor < 0) return file;
    const Claim claimed = claim(file.descriptor, file.path);
    if (claimed == Claim::ours && ::ftruncate(file.descriptor, 0) == 0) return file;
    ::close(file.descriptor);
    if (claimed == Claim::unknown) break;
  }
  // No locks here (some network file systems): a name that nobody has.
  Temporary file{target + ".XXXXXX.tmp"};
  file.descriptor = ::mkostemps(file.path.data(), 4, O_CLOEXEC);
  return file;
}

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
  const Temporary file = open_temporary(target_.string());
  if (file.descriptor < 0) fail_io(target_, "create");
  descriptor_ = file.descriptor;
  temporary_ = file.path;
  ::fchmod(descriptor_, 0644);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());  // while it is locked: afterwards it may be another writer's
  if (descriptor_ >= 0) ::close(descriptor_);
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
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_io(target_, "rename into place");
  temporary_.clear();
  ::close(descriptor_);
  descriptor_ = -1;
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
