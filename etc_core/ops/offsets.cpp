#include "etc_core/ops/offsets.h"

#include "etc_core/base/error.h"

namespace etc::ops {

void check_offsets(const char* where, const char* name, const std::int64_t* offsets, std::int64_t count) {
  for (std::int64_t i = 1; i <= count; ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    fail(where, "{}: expected non-decreasing, got {} after {} at {}", name, offsets[i], offsets[i - 1], i);
  }
}

}  // namespace etc::ops
