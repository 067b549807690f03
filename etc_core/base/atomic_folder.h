// A folder that is replaced as a whole: a reader sees the old files or the new ones, never a mixture.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/not_copied.h"

namespace etc {

// What the old folder holds and the new one does not.
enum class OldFiles {
  keep,  // goes along: somebody put it there
  drop,  // is deleted; for callers that looked at the old folder before
};

// A fresh folder under a temporary name beside the target. commit() syncs every file in it and swaps it with the target
// (which may or may not exist), then removes the old one. Without commit() the destructor removes the new one.
//   Beside TARGET there is TARGET.tmp.XXXXXX meanwhile, which holds the new folder, and a file whose lock says that its
//   writer lives. What a killed writer left is removed by the next writer of the same target (remove_left_over).
//   Symbolic links to the target are followed; permissions of the folder and of files with the same names stay.
class AtomicFolder : NotCopied {
 public:
  // `own`: names of files in the target that are the caller's, not somebody's: they never go along.
  // Throws Error when the target is something else than a folder, or when there is no room beside it.
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
  std::filesystem::path holder_;  // TARGET.tmp.XXXXXX; empty: nothing left to remove
  std::filesystem::path fresh_;   // in it: the new folder, after the exchange the old one
  int lock_ = -1;
};

// Removes what killed writers of this target left beside it: folders of the exact name, form and mark that AtomicFolder
// gives them, or still without anything in them, and of no living process; nothing else, whatever its name. A target that
// was moved aside is put back.
void remove_left_over(const std::filesystem::path& target);

// For messages: where a file that is written in an AtomicFolder's path() will lie; any other path as it is.
std::filesystem::path name_after_commit(const std::filesystem::path& path);

}  // namespace etc
