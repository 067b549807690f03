// What a benchmark's main() does with errors.
#pragma once

#include <cstdio>
#include <exception>

#include "etc_core/base/error.h"

namespace etc::bench {

// Runs run(); errors go to stderr. The exit code: 0, 2 for a call that is wrong, 1 for anything else that failed.
template <typename Run>
int bench_main(Run&& run) {
  try {
    run();
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace etc::bench
