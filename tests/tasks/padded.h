// Compares golden features, which include the reference's padding, with features without padding.
#pragma once

#include <vector>

#include "tests/support/catch.h"

namespace etc::test {

// Requires `ours`, padded to the golden length, to equal the golden array; prints the first place that differs.
template <typename Value>
void require_padded(const std::vector<Value>& golden, std::vector<Value> ours, Value padding) {
  REQUIRE(ours.size() <= golden.size());
  ours.resize(golden.size(), padding);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    if (ours[i] == golden[i]) continue;
    CAPTURE(i);
    REQUIRE(ours[i] == golden[i]);
  }
}

// Requires all rows of a feature to have one length, as the reference pads them. Otherwise an offset could be wrong
// unnoticed where a row's padding equals the next row's first number.
template <typename Value>
void require_one_length(const std::vector<std::vector<Value>>& rows) {
  for (const auto& row : rows) REQUIRE(row.size() == rows.front().size());
}

}  // namespace etc::test
