// A lock file, held by an advisory lock (flock): shows that a process works in a folder, and which one. The lock is
// released when the process ends, however it ends.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc {

class LockFile : NotCopied {
 public:
  // Opens the file, creating it and its folder if necessary, takes its lock and writes this process's id into it. If
  // another process has the lock, holder() says which one. Where locks are not supported (some network file systems),
  // it warns and behaves as if it had the lock. Throws Error when the file cannot be opened.
  explicit LockFile(const std::filesystem::path& path);
  ~LockFile();  // releases the lock; the file stays, because another process may be waiting for its lock

  // The id of the process that has the lock instead, "?" if unknown; "": this object has the lock. Another object of
  // the same process counts like another process.
  const std::string& holder() const { return holder_; }

  // The id of the process that has a file's lock, without taking the lock; "" if none has it or there is no file.
  static std::string holder_of(const std::filesystem::path& path);

 private:
  bool take(const std::filesystem::path& path);

  int descriptor_ = -1;
  std::string holder_;
};

}  // namespace etc
