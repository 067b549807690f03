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
constexpr std::string_view kMark = "a folder being written by etc\n";  // content of the lock file, once it is locked
constexpr const char* kFreshName = "new";
constexpr const char* kOldName = "old";  // the target while it is moved aside

// The folder to replace: links followed, without a trailing slash.
fs::path folder_meant(const fs::path& given) {
  fs::path path = given.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "run/best/"
  return follow_links(path);
}

// The target to which a staging directory of this name belongs; "": not the name of a staging directory.
std::string target_of(const std::string& name) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (name.size() <= kMiddle.size() + kLetters || !std::all_of(name.end() - kLetters, name.end(), is_letter)) return "";
  const std::string rest = name.substr(0, name.size() - kLetters);
  return rest.ends_with(kMiddle) ? rest.substr(0, rest.size() - kMiddle.size()) : "";
}

// Whether make_holder() made this folder: its lock file contains the mark, and the folder holds nothing but the new and
// the old folder. Or there is no mark yet; then it must be empty or hold only an empty lock file.
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

// Creates the lock file and sets `locked`, which stays false on network file systems without locks. Returns -1 with
// errno; ENOENT if another writer has meanwhile removed the folder, which had no mark yet, as left over.
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

// Remove the lock file last: if the process is killed part-way, the next writer still recognises the staging directory
// as left over.
void remove_holder(const fs::path& holder) {
  std::error_code ignored;
  for (const char* name : {kFreshName, kOldName, kLockName}) fs::remove_all(holder / name, ignored);
  fs::remove(holder, ignored);
}

// Takes an entry over into another folder: as a hard link if the file system supports it, else as a copy.
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
  make_folders(folder_of(target_), target_);
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
  // The mark is written after locking, so a marked lock file always shows correctly whether the writer is alive.
  // Without locks there is no mark, and what a killed writer leaves is never removed.
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
    // Files that were added to the old folder in the meantime.
    if (keeps && swapped) keep_others(fresh_, target_);
  } catch (const fs::filesystem_error& error) {
    fail(target_.string(), "cannot replace the folder{}: {}", swapped ? " wholly" : "", error.what());
  }
  sync_path(folder_of(target_));
  remove_holder(holder_);
  holder_.clear();
}

// Takes over entries of `old` that `fresh` lacks; entries of the same name keep their permission bits.
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

// Puts the new folder into place. True: there was an old folder, which is now at fresh_.
bool AtomicFolder::swap() {
  const char *from = fresh_.c_str(), *to = target_.c_str();
  if (::rename(from, to) == 0) return false;  // fails when the target holds files: exchange the two
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) != 0) swap_without_exchange();
  return true;
}

// For file systems without atomic exchange: for a moment, only the old folder exists, under another name.
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
  for (const auto& entry : fs::directory_iterator(folder_of(target), ignored)) {
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
      // The writer was killed between the two renames: put the old, complete folder back.
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
