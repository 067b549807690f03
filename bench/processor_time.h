// CPU time in seconds used by this process (all threads together) and by the children it has waited for. On a machine
// shared with other programs this measures compute-bound work (including reads of cached files) better than wall time;
// for one thread on an idle machine both are the same.
#pragma once

#include <sys/resource.h>

namespace etc::bench {

inline double processor_seconds() {
  double seconds = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

}  // namespace etc::bench
