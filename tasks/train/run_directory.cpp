#include "tasks/train/run_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/output_target.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLockName = "lock";

// Called before the lock is taken, because that creates a file in the folder.
const fs::path& own_folder(const fs::path& folder) {
  make_folders(follow_links(folder), folder);
  if (!is_run_folder(folder) && !fs::is_empty(folder)) {
    fail_usage(folder.string(),
               "the folder holds files that belong to no run: expected a new or empty folder, or the folder of a run");
  }
  return folder;
}

}  // namespace

RunDirectory::RunDirectory(fs::path folder) : folder_(std::move(folder)), lock_(own_folder(folder_) / kLockName) {
  if (!lock_.holder().empty()) {
    fail(folder_.string(), "in use by another run (process {}): expected a folder of its own for each run",
         lock_.holder());
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
  // If the file system does not answer now, leave the report to the code that writes; it may recover.
  if (!there && errno != ENOENT && errno != ENOTDIR) return;
  if (there && status.st_dev == device_ && status.st_ino == inode_) return;
  fail(folder_.string(), "the run's folder is gone: it was {} while the run was at work",
       there ? "replaced by another" : "deleted or renamed");
}

std::vector<fs::path> files_of_run(const fs::path& folder) {
  std::error_code none;  // the folder may not exist yet
  std::vector<fs::path> files, checkpoints{folder / "best", folder / "last"};
  for (const char* name : {kLockName, "config.json", "log.txt", "metrics.jsonl"}) files.push_back(folder / name);
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with("events.out.")) files.push_back(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(folder / "kept", none)) checkpoints.push_back(entry.path());
  for (const fs::path& checkpoint : checkpoints) {
    for (const auto& entry : fs::directory_iterator(checkpoint, none)) files.push_back(entry.path());
  }
  return files;
}

bool is_run_folder(const fs::path& folder) {
  const fs::path lock = folder / kLockName;
  constexpr std::uintmax_t kMostDigits = 20;
  std::error_code none;
  if (!fs::is_regular_file(lock, none) || fs::file_size(lock, none) > kMostDigits) return false;
  const std::string number = read_file(lock);
  return std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string run_holder(const fs::path& folder) {
  return LockFile::holder_of(folder / kLockName);
}

}  // namespace etc
