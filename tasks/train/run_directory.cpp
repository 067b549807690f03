#include "tasks/train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/output_target.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLockName = "lock";
// The process number in a lock's file.
std::string noted_process(int lock) {
  char text[32] = {};
  return ::pread(lock, text, sizeof text - 1, 0) > 0 ? text : "?";
}

}  // namespace

RunDirectory::RunDirectory(fs::path folder) : folder_(std::move(folder)) {
  make_folders(folder_, folder_);
  if (!fs::exists(folder_ / kLockName) && !fs::is_empty(folder_)) {
    fail(folder_.string(),
         "the folder holds files that belong to no run: expected a new or empty folder, or the folder of a run");
  }
  const fs::path lock = folder_ / kLockName;
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) fail(lock.string(), "cannot open: {}", std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = noted_process(lock_);
    ::close(lock_);
    fail(folder_.string(), "in use by another run (process {}): expected a folder of its own for each run", holder);
  }
  char text[32] = {};
  // The number is for people; the lock itself ends with the process, however it ends.
  const int length = std::snprintf(text, sizeof text, "%d", static_cast<int>(::getpid()));
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, text, static_cast<std::size_t>(length), 0) != length) {
    log::warn("{}: cannot note the process number: {}", lock.string(), std::strerror(errno));
  }
  for (const char* checkpoint : {"best", "last"}) remove_left_over(folder_ / checkpoint);
  struct stat status {};
  if (::stat(folder_.c_str(), &status) != 0) fail(folder_.string(), "cannot look at it: {}", std::strerror(errno));
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

void RunDirectory::require_present() const {
  struct stat status {};
  const bool there = ::stat(folder_.c_str(), &status) == 0;
  // A file system that does not answer now is for those who write to report; it may come back.
  if (!there && errno != ENOENT && errno != ENOTDIR) return;
  if (there && status.st_dev == device_ && status.st_ino == inode_) return;
  fail(folder_.string(), "the run's folder is gone: it was {} while the run was at work",
       there ? "replaced by another" : "deleted or renamed");
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

bool is_run_folder(const fs::path& folder) {
  return fs::exists(folder / kLockName);
}

std::string run_holder(const fs::path& folder) {
  const int lock = ::open((folder / kLockName).c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return "";
  // Shared: two that only look do not see each other.
  const std::string holder = ::flock(lock, LOCK_SH | LOCK_NB) != 0 ? noted_process(lock) : "";
  ::close(lock);
  return holder;
}

}  // namespace etc
