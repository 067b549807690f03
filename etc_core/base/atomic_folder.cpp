#include "etc_core/base/atomic_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMiddle = ".tmp.";
constexpr std::size_t kLetters = 6;  // of mkdtemp
constexpr const char* kLockName = "writer";
constexpr std::string_view kMark = "a folder being written by etc\n";  // in the lock's file, once it is locked
constexpr const char* kFreshName = "new";
constexpr const char* kOldName = "old";  // the target while it is moved aside

// The folder that is meant, without a slash at its end.
fs::path folder_meant(const fs::path& given) {
  fs::path path = given.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "run/best/"
  return follow_links(path);
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// The target whose holders have such a name; "": no holder's name.
std::string target_of(const std::string& name) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (name.size() <= kMiddle.size() + kLetters || !std::all_of(name.end() - kLetters, name.end(), is_letter)) return "";
  const std::string rest = name.substr(0, name.size() - kLetters);
  return rest.ends_with(kMiddle) ? rest.substr(0, rest.size() - kMiddle.size()) : "";
}

// Whether a folder is one that make_holder() made: its lock's file carries the mark, and nothing else lies in it. Or there
// is no mark yet, and nothing but the lock's file, if that.
bool is_holder(const fs::path& folder) {
  std::error_code code;
  if (fs::symlink_status(folder, code).type() != fs::file_type::directory) return false;
  bool has_more = false;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename();
    if (name == kLockName) continue;
    if (name != kFreshName && name != kOldName) return false;
    has_more = true;
  }
  if (code) return false;
  const fs::file_type lock = fs::symlink_status(folder / kLockName, code).type();
  if (lock == fs::file_type::not_found) return !has_more;
  if (lock != fs::file_type::regular) return false;
  try {
    const std::string mark = read_file(folder / kLockName, kMark.size());
    return mark == kMark || (mark.empty() && !has_more);
  } catch (const Error&) {
    return false;
  }
}

// The lock's file, new, and whether it is locked: some network file systems have no locks. -1 with errno, ENOENT where
// another writer took the folder, still without a mark, for what a killed one left.
int take_new_lock(const fs::path& path, bool& locked) {
  const int lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (lock < 0) return -1;
  locked = ::flock(lock, LOCK_EX | LOCK_NB) == 0;
  const bool taken = !locked && errno == EWOULDBLOCK;
  struct stat status {};
  if (!taken && ::fstat(lock, &status) == 0 && status.st_nlink > 0) return lock;
  ::close(lock);
  errno = ENOENT;
  return -1;
}

// The lock's file goes last: whoever is killed on the way leaves a holder that the next writer knows as one.
void remove_holder(const fs::path& holder) {
  std::error_code ignored;
  for (const char* name : {kFreshName, kOldName, kLockName}) fs::remove_all(holder / name, ignored);
  fs::remove(holder, ignored);
}

// The same entry in another folder: a second name of the file where the disk can, else a copy.
void take_along(const fs::path& from, const fs::path& to) {
  if (fs::is_directory(fs::symlink_status(from))) {
    fs::create_directory(to, from);
    for (const auto& entry : fs::directory_iterator(from)) take_along(entry.path(), to / entry.path().filename());
  } else if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) != 0) {
    fs::copy(from, to, fs::copy_options::copy_symlinks);
  }
}

}  // namespace

AtomicFolder::AtomicFolder(const fs::path& target, OldFiles old_files, std::vector<std::string> own)
    : target_(folder_meant(target)), old_files_(old_files), own_(std::move(own)) {
  if (fs::exists(target_) && !fs::is_directory(target_)) fail(target_.string(), "expected a folder, got a file");
  make_folders(parent_of(target_), target_);
  remove_left_over(target_);
  try {
    make_holder();
  } catch (...) {
    if (!holder_.empty()) remove_holder(holder_);
    if (lock_ >= 0) ::close(lock_);
    throw;
  }
}

void AtomicFolder::make_holder() {
  constexpr int kTries = 100;
  const auto refuse = [&] { fail(target_.string(), "cannot create a folder: {}", std::strerror(errno)); };
  bool locked = false;
  for (int tried = 1; lock_ < 0; ++tried) {
    std::string pattern = target_.string() + std::string(kMiddle) + std::string(kLetters, 'X');
    if (::mkdtemp(pattern.data()) == nullptr) refuse();
    holder_ = pattern;
    ::chmod(holder_.c_str(), 0755);
    lock_ = take_new_lock(holder_ / kLockName, locked);
    if (lock_ < 0 && (errno != ENOENT || tried == kTries)) refuse();
  }
  // The mark comes after the lock: whoever sees the mark can rely on the lock. Without locks there is no mark, and what a
  // killed writer leaves stays.
  if (locked && ::write(lock_, kMark.data(), kMark.size()) != std::ssize(kMark)) refuse();
  fresh_ = holder_ / kFreshName;
  if (::mkdir(fresh_.c_str(), 0755) != 0) refuse();
  ::chmod(fresh_.c_str(), 0755);
}

AtomicFolder::~AtomicFolder() {
  if (!holder_.empty()) remove_holder(holder_);
  if (lock_ >= 0) ::close(lock_);
}

void AtomicFolder::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(fresh_)) sync_path(entry.path());
  const bool keeps = old_files_ == OldFiles::keep && fs::exists(target_);
  bool swapped = false;
  try {
    if (keeps) keep_others(target_, fresh_);
    if (fs::exists(target_)) fs::permissions(fresh_, fs::status(target_).permissions());
    sync_path(fresh_);
    swapped = swap();
    // What came in the meantime.
    if (keeps && swapped) keep_others(fresh_, target_);
  } catch (const fs::filesystem_error& error) {
    fail(target_.string(), "cannot replace the folder{}: {}", swapped ? " wholly" : "", error.what());
  }
  sync_path(parent_of(target_));
  remove_holder(holder_);
  holder_.clear();
}

// Entries of `old` that `fresh` lacks go along; those of the same name keep their permission bits.
void AtomicFolder::keep_others(const fs::path& old, const fs::path& fresh) const {
  for (const auto& entry : fs::directory_iterator(old)) {
    const std::string name = entry.path().filename();
    const fs::path to = fresh / name;
    if (fs::exists(fs::symlink_status(to))) {
      if (entry.symlink_status().type() == fs::file_type::regular) fs::permissions(to, entry.status().permissions());
    } else if (std::find(own_.begin(), own_.end(), name) == own_.end()) {
      take_along(entry.path(), to);
    }
  }
}

// Whether there was an old folder, which then is fresh_.
bool AtomicFolder::swap() {
  const char *from = fresh_.c_str(), *to = target_.c_str();
  if (::rename(from, to) == 0) return false;  // fails when the target holds files: exchange the two
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) != 0) swap_without_exchange();
  return true;
}

// A file system that cannot exchange: for a moment there is only the old folder under another name.
void AtomicFolder::swap_without_exchange() {
  const fs::path aside = holder_ / kOldName;
  if (::rename(target_.c_str(), aside.c_str()) != 0) fail(target_.string(), "cannot rename: {}", std::strerror(errno));
  if (::rename(fresh_.c_str(), target_.c_str()) != 0) {
    const int code = errno;
    ::rename(aside.c_str(), target_.c_str());
    fail(target_.string(), "cannot rename into place: {}", std::strerror(code));
  }
  fresh_ = aside;
}

void remove_left_over(const fs::path& given) {
  const fs::path target = folder_meant(given);
  std::error_code ignored;
  std::vector<fs::path> holders;
  for (const auto& entry : fs::directory_iterator(parent_of(target), ignored)) {
    const fs::path& path = entry.path();
    if (target_of(path.filename()) == target.filename() && is_holder(path)) holders.push_back(path);
  }
  for (const fs::path& holder : holders) {
    const int lock = ::open((holder / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) {
      fs::remove(holder, ignored);  // only if it is empty
      continue;
    }
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) {
      // Killed between the two renames: the old folder, which is whole, goes back.
      if (fs::exists(holder / kOldName) && !fs::exists(target)) fs::rename(holder / kOldName, target, ignored);
      remove_holder(holder);
    }
    ::close(lock);
  }
}

fs::path name_after_commit(const fs::path& path) {
  const fs::path folder = path.parent_path(), holder = folder.parent_path();
  const std::string target = target_of(holder.filename());
  if (folder.filename() != kFreshName || target.empty()) return path;
  return holder.parent_path() / target / path.filename();
}

}  // namespace etc
