// The folder a run writes: resolved configuration, log, metrics, checkpoints, and the lock that keeps other processes
// out.
//
//   config.json      resolved configuration             metrics.jsonl    one line per logged step and evaluation
//   log.txt          every message                      events.out.*     the same numbers for TensorBoard
//   best/, last/     checkpoints                        lock             held while a process uses the folder
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/lock_file.h"
#include "etc_core/base/not_copied.h"

namespace etc {

// Holds the lock until the end of the process or of this object.
class RunDirectory : NotCopied {
 public:
  // Creates the folder if necessary, and removes temporary files that a killed writer of its checkpoints left
  // (base/atomic_folder.h), but no other file. Throws Error when another process holds the folder (naming that
  // process), UsageError when it holds files but is not a run's folder (so that unrelated files do not get mixed up
  // with a run).
  explicit RunDirectory(std::filesystem::path folder);

  // Throws Error when the folder is no longer the one that was opened: deleted, renamed, or replaced by another.
  void require_present() const;

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
  LockFile lock_;
  std::uint64_t device_ = 0, inode_ = 0;  // of the folder
};

// The files that a run has written so far: the above, and all of its checkpoints.
std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& folder);

// Whether a folder is a run's (it has a lock: a file with a process number, or still empty), and the number of the
// process that uses it, "" when none does.
bool is_run_folder(const std::filesystem::path& folder);
std::string run_holder(const std::filesystem::path& folder);

}  // namespace etc
