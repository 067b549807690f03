#include "etc_core/base/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/output_target.h"
#include "etc_core/base/same_file.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr const char* kUnknown = "?";

std::string noted_process(int lock) {
  char text[32] = {};
  return ::pread(lock, text, sizeof text - 1, 0) > 0 ? text : kUnknown;
}

// The process id is written for users; the lock does not need it.
void note_process(int lock, const fs::path& path) {
  char text[32] = {};
  const int length = std::snprintf(text, sizeof text, "%d", static_cast<int>(::getpid()));
  if (::ftruncate(lock, 0) == 0 && ::pwrite(lock, text, static_cast<std::size_t>(length), 0) == length) return;
  log::warn("{}: cannot note the process number: {}", path.string(), std::strerror(errno));
}

}  // namespace

LockFile::LockFile(const fs::path& path) {
  // Try several times: holder_of() in another process takes the lock for a moment, and other processes may create and
  // remove the file and its folder.
  constexpr int kTries = 10;
  constexpr std::chrono::milliseconds kPause{10};
  for (int tried = 0; tried < kTries; ++tried) {
    if (tried > 0) std::this_thread::sleep_for(kPause);
    if (take(path)) {
      holder_.clear();
      return;
    }
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
}

// False: not taken; holder_ tells who has the lock.
bool LockFile::take(const fs::path& path) {
  holder_ = kUnknown;
  if (path.has_parent_path()) make_folders(path.parent_path(), path);
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0 && errno == ENOENT) return false;  // the folder was just removed
  if (descriptor_ < 0) fail(path.string(), "cannot open: {}", std::strerror(errno));
  const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK) {
    log::warn("{}: cannot lock: {} (another process at work here would not be noticed)", path.string(),
              std::strerror(errno));
    return true;
  }
  if (!leads_to(path, descriptor_)) return false;  // the lock's previous owner may just have removed the file
  if (locked) {
    note_process(descriptor_, path);
  } else {
    holder_ = noted_process(descriptor_);
  }
  return locked;
}

LockFile::~LockFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string LockFile::holder_of(const fs::path& path) {
  const int lock = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return "";
  // A shared lock, so that two processes calling holder_of() do not take each other for a holder.
  const bool taken = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const std::string holder = taken ? noted_process(lock) : "";
  ::close(lock);
  return holder;
}

}  // namespace etc
