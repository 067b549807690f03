#include "etc_core/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/same_file.h"

namespace etc {

namespace {

[[noreturn]] void fail_io(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  fail(name_after_commit(path).string(), "cannot {}: {}", action, std::strerror(code));
}

// Closes a descriptor on scope exit.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

enum class Claim { ours, taken, unknown };

// Takes the lock of an open temporary file. The lock is released when its process ends, however it ends, so an unlocked
// file is left over. A file that was renamed or removed between opening and locking must not be used.
Claim claim(int descriptor, const std::string& path) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? Claim::taken : Claim::unknown;
  return leads_to(path, descriptor) ? Claim::ours : Claim::taken;
}

struct Temporary {
  std::string path;
  int descriptor = -1;  // -1: `error` says why
  int error = 0;
};

// Whether the file can be a temporary file of this program: a regular file with one name, not a FIFO or a hard link.
bool is_plain(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
}

// The target's name, truncated so that the suffix fits into the longest allowed file name.
std::string stem_of(const std::filesystem::path& target) {
  constexpr std::size_t kSuffix = 24;
  const std::string name = target.filename().string().substr(0, NAME_MAX - kSuffix);
  return (target.parent_path() / name).string();
}

// Opens "TARGET.partial.tmp", or a name with a number while other writers of the same target hold it. A file that a
// killed process left under that name is reused, so left-over files do not accumulate.
Temporary open_temporary(const std::filesystem::path& target) {
  constexpr int kMostWriters = 100;
  const std::string stem = stem_of(target);
  for (int number = 1; number <= kMostWriters; ++number) {
    Temporary file{stem + ".partial" + (number > 1 ? std::to_string(number) : "") + ".tmp"};
    // O_NONBLOCK, because the name may be a FIFO.
    file.descriptor = ::open(file.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    file.error = errno;
    struct stat there {};
    if (file.descriptor < 0 && ::lstat(file.path.c_str(), &there) == 0) continue;  // exists, but not usable
    if (file.descriptor < 0) return file;
    const Claim claimed = is_plain(file.descriptor) ? claim(file.descriptor, file.path) : Claim::taken;
    if (claimed == Claim::ours && ::ftruncate(file.descriptor, 0) == 0) return file;
    ::close(file.descriptor);
    if (claimed == Claim::unknown) break;
  }
  // Without locks (some network file systems), use a unique name.
  Temporary file{stem + ".XXXXXX.tmp"};
  file.descriptor = ::mkostemps(file.path.data(), 4, O_CLOEXEC);
  file.error = errno;
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

AtomicFile::AtomicFile(std::filesystem::path target) : name_(std::move(target)), target_(find_output_target(name_)) {
  if (target_.kind == OutputTarget::Kind::in_place) {
    descriptor_ = open_in_place(target_, name_);
    return;
  }
  require_writable(name_);  // an existing temporary file may open even in a folder without write permission
  if (target_.path.has_parent_path()) make_folders(target_.path.parent_path(), name_);
  const Temporary file = open_temporary(target_.path);
  if (file.descriptor < 0) {
    errno = file.error;
    fail_io(name_, "create");
  }
  descriptor_ = file.descriptor;
  temporary_ = file.path;
  // From the first byte on, users without access to the old file have none to the new one. Until commit(), the writer
  // itself always has access.
  const bool replaces = target_.kind == OutputTarget::Kind::regular;
  ::fchmod(descriptor_, replaces ? target_.permissions | S_IRUSR | S_IWUSR : 0644);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty() && staged_ < 0) {
    ::unlink(temporary_.c_str());  // while it is locked: afterwards another writer may have taken the name
  }
  if (descriptor_ >= 0) ::close(descriptor_);
  if (staged_ >= 0) ::close(staged_);
}

const std::filesystem::path& AtomicFile::temporary_path() {
  if (!temporary_.empty()) return temporary_;
  std::string name = (std::filesystem::temp_directory_path() / "etc.XXXXXX").string();
  staged_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (staged_ < 0) fail_io(name, "create");
  ::unlink(name.c_str());  // so that the file disappears with the process, however that ends
  temporary_ = "/proc/self/fd/" + std::to_string(staged_);
  return temporary_;
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_io(name_, "write");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

void AtomicFile::copy_staged() {
  std::vector<char> block(1 << 20);
  for (off_t offset = 0;;) {
    const ssize_t got = ::pread(staged_, block.data(), block.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io(name_, "read what is to be copied");
    if (got == 0) return;
    write({block.data(), static_cast<std::size_t>(got)});
    offset += got;
  }
}

void AtomicFile::commit() {
  if (target_.kind == OutputTarget::Kind::in_place) {
    if (staged_ >= 0) copy_staged();
    // FIFOs and many devices cannot be synced and return EINVAL.
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) fail_io(name_, "sync");
  } else {
    if (target_.kind == OutputTarget::Kind::regular) {
      // Set the owner first, because changing it may clear permission bits. Only root can change the owner; otherwise
      // the file keeps the current user as owner.
      [[maybe_unused]] const int given = ::fchown(descriptor_, target_.owner, target_.group);
      ::fchmod(descriptor_, target_.permissions);
    }
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail_io(name_, "sync");
    if (::rename(temporary_.c_str(), target_.path.c_str()) != 0) fail_io(name_, "rename into place");
    temporary_.clear();
    sync_path(target_.path.has_parent_path() ? target_.path.parent_path() : std::filesystem::path("."));
  }
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 && errno != EINTR) fail_io(name_, "write");
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void sync_path(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) fail_io(path, "open to sync");
  // Some file systems cannot sync folders and return EINVAL; this is ignored.
  if (::fsync(file.value) != 0 && errno != EINVAL && errno != EROFS) fail_io(path, "sync");
}

}  // namespace etc
