// What the main function of every bench does around its run.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>

#include "etc_core/base/error.h"

namespace etc::bench {

// The exit code: 0 of a run that came to its end, 2 of a command line that cannot be meant, 1 of any other failure,
// which is told on stderr.
inline int exit_code_of(const std::function<void()>& run) {
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
