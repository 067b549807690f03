#include "etc_core/base/output_target.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/interruption.h"
#include "etc_core/base/same_file.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;               // in a chain, as the kernel counts
constexpr long kWaitForReader = 20'000'000;  // nanoseconds between two attempts to open a FIFO

[[noreturn]] void fail_io(const fs::path& name, const char* action, int code) {
  fail(name.string(), "cannot {}: {}", action, std::strerror(code));
}

// Links such as /proc/self/fd/1 refer to an open file directly; their text ("pipe:[4026]") is not a path.
bool is_open_file(const fs::path& link) {
  struct statfs system {};
  return ::statfs(folder_of(link).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Duplicates the process's own descriptor N for a link /proc/self/fd/N, so that both share one file offset; -1: none.
int copy_of_own(const fs::path& link) {
  const std::string digits = link.filename().string();
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return -1;
  const int number = std::atoi(digits.c_str());
  return leads_to(link, number) ? ::fcntl(number, F_DUPFD_CLOEXEC, 3) : -1;
}

// Polls instead of blocking in open(), which would continue to wait after the first Ctrl-C.
int open_fifo(const fs::path& path, const fs::path& name) {
  int descriptor = -1;
  while ((descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
    if (errno != ENXIO && errno != EINTR) fail_io(name, "open", errno);
    const struct timespec pause { 0, kWaitForReader };
    if (told_to_stop() || ::nanosleep(&pause, nullptr) != 0) {
      throw Interrupted(name.string() + ": stopped while waiting for a reader of the FIFO");
    }
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

// Throws Error unless files and folders can be made in `folder`, or in its nearest parent that exists.
void require_room_in(fs::path folder, const fs::path& name) {
  struct stat status {};
  while (::stat(folder.c_str(), &status) != 0) {
    if (errno != ENOENT || folder == folder_of(folder)) fail_io(name, "create", errno);
    folder = folder_of(folder);
  }
  if (!S_ISDIR(status.st_mode)) fail_io(name, "create", ENOTDIR);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) fail_io(name, "create", errno);
}

}  // namespace

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

fs::path follow_links(const fs::path& name) {
  fs::path path = name;
  for (int hops = 0;; ++hops) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno == ENOENT) return path;
      fail_io(name, "look up", errno);
    }
    if (!S_ISLNK(status.st_mode) || is_open_file(path)) return path;
    if (hops == kMostLinks) fail_io(name, "look up", ELOOP);
    std::error_code code;
    const fs::path text = fs::read_symlink(path, code);
    if (code) fail_io(name, "look up", code.value());
    path = text.is_absolute() ? text : path.parent_path() / text;
  }
}

OutputTarget find_output_target(const fs::path& name) {
  OutputTarget target{follow_links(name)};
  struct stat status {};
  if (::stat(target.path.c_str(), &status) != 0) {
    if (errno != ENOENT) fail_io(name, "look up", errno);
    if (!target.path.has_filename()) fail(name.string(), "expected a file, got the name of a folder");
    return target;
  }
  if (S_ISDIR(status.st_mode)) fail(name.string(), "expected a file, got a folder");
  const bool open_file = fs::is_symlink(target.path);
  if (S_ISSOCK(status.st_mode) && !open_file) {
    fail(name.string(), "expected a file, a device or a FIFO, got a socket");
  }
  target.kind = S_ISREG(status.st_mode) && !open_file ? OutputTarget::Kind::regular : OutputTarget::Kind::in_place;
  target.permissions = status.st_mode & 0777;
  target.owner = status.st_uid;
  target.group = status.st_gid;
  return target;
}

int open_in_place(const OutputTarget& target, const fs::path& name) {
  const bool open_file = fs::is_symlink(target.path);
  if (open_file) {
    const int own = copy_of_own(target.path);
    if (own >= 0) return own;
  }
  struct stat status {};
  if (::stat(target.path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) return open_fifo(target.path, name);
  const int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC | (open_file ? O_APPEND : 0);
  const int descriptor = ::open(target.path.c_str(), flags);
  if (descriptor < 0) fail_io(name, "open", errno);
  return descriptor;
}

void make_folders(const fs::path& folder, const fs::path& name) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) fail(name.string(), "cannot create the folder {}: {}", folder.string(), code.message());
}

void require_writable(const fs::path& name) {
  const OutputTarget target = find_output_target(name);
  if (target.kind == OutputTarget::Kind::in_place) {
    if (fs::is_symlink(target.path)) return;  // an open file: the permission was checked when it was opened
    if (::faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0) fail_io(name, "open", errno);
    return;
  }
  require_room_in(folder_of(target.path), name);
}

void require_replaceable_folder(const fs::path& name) {
  const fs::path path = follow_links(name.has_filename() ? name : name.parent_path());  // "analysis/"
  require_room_in(folder_of(path), name);
}

}  // namespace etc
