// A folder that is replaced as a whole: a reader sees the old files or the new ones, never a mixture.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc {

// What happens to files of the old folder that the new one lacks.
enum class OldFiles {
  keep,  // kept in the new folder: somebody else put them there
  drop,  // deleted; for callers that have checked the old folder before
};

// A new folder in a staging directory beside the target. commit() syncs every file in it and swaps it with the target
// (which may or may not exist), then removes the old one. Without commit() the destructor removes the new one.
//   The staging directory is TARGET.tmp.XXXXXX. It holds the new folder and a lock file, whose lock (flock) shows that
//   the writer is alive. The next writer of the same target removes what a killed writer left (remove_left_over).
//   Symbolic links to the target are followed; permissions of the folder and of files with the same names stay.
class AtomicFolder : NotCopied {
 public:
  // `own`: names of files in the target that belong to the caller: they are never kept from the old folder.
  // Throws Error when the target is not a folder, or when no folder can be made beside it.
  AtomicFolder(const std::filesystem::path& target, OldFiles old_files, std::vector<std::string> own = {});
  ~AtomicFolder();

  const std::filesystem::path& path() const { return fresh_; }  // where to write
  void commit();                                                // throws Error; the old folder then stays

 private:
  void make_holder();
  void keep_others(const std::filesystem::path& old, const std::filesystem::path& fresh) const;
  bool swap();
  void swap_without_exchange();

  std::filesystem::path target_;  // links followed
  OldFiles old_files_;
  std::vector<std::string> own_;
  std::filesystem::path holder_;  // the staging directory TARGET.tmp.XXXXXX; empty: nothing left to remove
  std::filesystem::path fresh_;   // inside holder_: the new folder, after the exchange the old one
  int lock_ = -1;
};

// Removes staging directories that killed writers of this target left beside it. A folder is removed only if it has
// exactly the name, contents and mark of a staging directory (or is still empty) and no living process has its lock;
// nothing else is removed, whatever its name. A target that was moved aside is put back.
void remove_left_over(const std::filesystem::path& target);

// For messages: the final path of a file that is written in an AtomicFolder's path(); any other path unchanged.
std::filesystem::path name_after_commit(const std::filesystem::path& path);

}  // namespace etc
