// Sums of table rows in double. Shares no code with the library.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/dense.h"

namespace etc::test {

// One table [limit, cols] and the id of every row; an id outside [0, limit) contributes zeros and gets no gradient.
struct ReferenceLookup {
  Reals table;
  std::int64_t limit = 0;
  std::vector<std::int32_t> ids;
};

// e [M, cols] += table[id]
inline void reference_lookup(const ReferenceLookup& of, std::int64_t cols, Reals& e) {
  for (std::size_t i = 0; i < e.size(); ++i) {
    const auto col = static_cast<std::int64_t>(i) % cols;
    const std::int64_t id = of.ids[i / static_cast<std::size_t>(cols)];
    if (id >= 0 && id < of.limit) e[i] += of.table[static_cast<std::size_t>(id * cols + col)];
  }
}

// dtable [limit, cols] + the sum of de [M, cols] over the rows with that id. Linear in both.
inline Reals reference_lookup_gradient(Reals dtable, const std::vector<std::int32_t>& ids, std::int64_t cols,
                                       const Reals& de) {
  const std::int64_t limit = static_cast<std::int64_t>(dtable.size()) / cols;
  for (std::int64_t id = 0; id < limit; ++id) {
    for (std::size_t row = 0; row < ids.size(); ++row) {
      if (ids[row] != id) continue;
      for (std::int64_t col = 0; col < cols; ++col) {
        dtable[static_cast<std::size_t>(id * cols + col)] +=
            de[row * static_cast<std::size_t>(cols) + static_cast<std::size_t>(col)];
      }
    }
  }
  return dtable;
}

}  // namespace etc::test
