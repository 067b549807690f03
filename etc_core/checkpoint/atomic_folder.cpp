#include "etc_core/checkpoint/atomic_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

bool is_model_directory(const fs::path& folder) {
  const bool flat =
      std::all_of(fs::directory_iterator(folder), {}, [](const auto& entry) { return !entry.is_directory(); });
  if (!flat || !fs::exists(folder / "config.json") || !fs::exists(folder / "model.safetensors")) return false;
  try {
    const Json config = read_json_file(folder / "config.json");
    return config.is_object() && config.contains("model");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void require_replaceable(const fs::path& target) {
  if (!fs::exists(target)) return;
  if (!fs::is_directory(target)) fail(target.string(), "expected a folder, got a file");
  if (fs::is_empty(target) || is_model_directory(target)) return;
  fail(target.string(),
       "refusing to replace a folder that is not a model directory: expected config.json with a section \"model\", "
       "model.safetensors and no folders (give another folder)");
}

AtomicFolder::AtomicFolder(fs::path target) : target_(target.lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "run/best/"
  require_replaceable(target_);
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
