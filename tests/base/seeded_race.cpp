// A deliberate data race: two tasks of a loop add to one number. The thread sanitizer must report it.
#include <cstdint>
#include <cstdio>

#include "etc_core/base/parallel.h"

int main() {
  etc::set_thread_count(4);
  std::int64_t sum = 0;
  for (int turn = 0; turn < 100; ++turn) {
    etc::parallel_for(1000, [&](std::int64_t task) { sum += task; });
  }
  std::printf("%lld\n", static_cast<long long>(sum));
}
