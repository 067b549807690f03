// Simulates a system that gives this process no further thread.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "etc_core/base/not_copied.h"
#include "tests/support/catch.h"

namespace etc::test {

// While it exists, the address space has no room for further thread stacks; those of threads that have ended may be
// used again. Not with a sanitizer, which takes address space of its own.
class NoMoreThreads : NotCopied {
 public:
  NoMoreThreads() {
    REQUIRE(::getrlimit(RLIMIT_AS, &before_) == 0);
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    constexpr std::int64_t kRest = std::int64_t{4} << 20;  // a stack has 8 MiB
    const rlimit now = {static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + kRest), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_AS, &now) == 0);
  }
  ~NoMoreThreads() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

}  // namespace etc::test
