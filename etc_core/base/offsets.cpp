#include "etc_core/base/offsets.h"

#include "etc_core/base/error.h"

namespace etc {

void check_offsets(const char* where, const char* name, const std::int64_t* offsets, std::int64_t count) {
  for (std::int64_t i = 1; i <= count; ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    fail(where, "{}: expected non-decreasing, got {} after {} at {}", name, offsets[i], offsets[i - 1], i);
  }
}

void check_batch_offsets(const char* where, const char* name, const std::int64_t* offsets, std::int64_t examples) {
  if (offsets == nullptr) fail(where, "{}: expected [B+1={}] offsets, got null", name, examples + 1);
  if (offsets[0] != 0) fail(where, "{}: expected to start at 0, got {}", name, offsets[0]);
  check_offsets(where, name, offsets, examples);
}

}  // namespace etc
