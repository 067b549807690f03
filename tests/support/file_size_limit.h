// Simulates a full disk for this process only.
#pragma once

#include <sys/resource.h>

#include <csignal>

#include "etc_core/base/not_copied.h"

namespace etc::test {

// While an object exists, no file written by this process can grow beyond this size: writing fails as on a full disk.
class FileSizeLimit : NotCopied {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    struct rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  struct rlimit before_ {};
  void (*handler_)(int);
};

}  // namespace etc::test
