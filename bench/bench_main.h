// Error handling of a benchmark's main().
#pragma once

#include <cstdio>
#include <exception>

#include "etc_core/base/error.h"

namespace etc::bench {

// Runs run(); errors go to stderr. Exit codes: 0 success, 2 wrong usage, 1 any other error.
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
