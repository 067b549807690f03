// A file whose lock says that somebody is at work in a place, and who. The lock ends with the process, however it ends.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc {

class LockFile : NotCopied {
 public:
  // Opens the file, made with its folder if need be, takes its lock and notes the number of this process in it; or says by
  // holder() who has the lock. Where there are no locks (some network file systems) it warns and takes it as its own.
  // Throws Error when the file cannot be opened.
  explicit LockFile(const std::filesystem::path& path);
  ~LockFile();  // gives the lock back; the file stays, for others may wait for this very one

  // The number of the process that has the lock instead, "?" where it is not known; "": this object has it. Another object
  // of the same process is as good as another process.
  const std::string& holder() const { return holder_; }

  // The same of any file, without taking its lock; "" for nobody and for a file that is not there.
  static std::string holder_of(const std::filesystem::path& path);

 private:
  bool take(const std::filesystem::path& path);

  int descriptor_ = -1;
  std::string holder_;
};

}  // namespace etc
