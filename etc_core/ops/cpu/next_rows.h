// The destination of results, passed to a product so that it can prefetch it while it computes.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

// The rows that the caller will write next: as many rows, and numbers per row, as the product has; rows are `row_bytes`
// apart, a number takes `number_bytes`.
struct NextRows {
  const void* first = nullptr;  // null: no prefetch
  std::int64_t row_bytes = 0, number_bytes = 0;
};

}  // namespace etc::ops::cpu
