// Where results go, said to a product so that it can ask memory for them while it computes.
#pragma once

#include <cstdint>

namespace etc::ops::cpu {

// Rows that the caller will write next, as many and with as many numbers as the product's: `row_bytes` from one to the
// next, `number_bytes` for each number.
struct NextRows {
  const void* first = nullptr;  // null: not said
  std::int64_t row_bytes = 0, number_bytes = 0;
};

}  // namespace etc::ops::cpu
