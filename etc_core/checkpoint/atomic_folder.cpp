#include "etc_core/checkpoint/atomic_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc {

namespace fs = std::filesystem;

AtomicFolder::AtomicFolder(fs::path target) : target_(target.lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "run/best/"
  if (fs::exists(target_)) {
    if (!fs::is_directory(target_)) fail(target_.string(), "expected a folder, got a file");
    if (!fs::is_empty(target_) && !fs::exists(target_ / "config.json")) {
      fail(target_.string(), "refusing to replace a folder that is not a model directory (it has no config.json)");
    }
  }
  std::error_code code;
  if (target_.has_parent_path()) fs::create_directories(target_.parent_path(), code);
  std::string pattern = target_.string() + ".tmp.XXXXXX";
  if (code || ::mkdtemp(pattern.data()) == nullptr) {
    fail(target_.string(), "cannot create a folder: {}", code ? code.message() : std::strerror(errno));
  }
  ::chmod(pattern.c_str(), 0755);
  temporary_ = pattern;
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void AtomicFolder::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(temporary_)) sync_path(entry.path());
  sync_path(temporary_);
  const char *from = temporary_.c_str(), *to = target_.c_str();
  bool swapped = false;
  if (::rename(from, to) != 0) {  // fails when the target holds files: exchange the two
    swapped = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0;
    if (!swapped) {
      // A file system that cannot exchange: for a moment there is only the old folder under another name.
      const std::string old = target_.string() + ".old";
      std::error_code ignored;
      fs::remove_all(old, ignored);
      if (::rename(to, old.c_str()) != 0) fail(target_.string(), "cannot rename: {}", std::strerror(errno));
      if (::rename(from, to) != 0) {
        const int code = errno;
        fs::rename(old, target_, ignored);
        fail(target_.string(), "cannot rename into place: {}", std::strerror(code));
      }
      temporary_ = old;
      swapped = true;
    }
  }
  sync_path(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
  std::error_code ignored;
  if (swapped) fs::remove_all(temporary_, ignored);  // now the old files
  temporary_.clear();
}

}  // namespace etc
