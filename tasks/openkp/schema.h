// The features of a prepared OpenKP data set (task-openkp 8.3).
#pragma once

#include "data/dataset.h"

namespace etc::openkp {

// With fixed blocks the features of the page's elements are empty lists, which are not stored; first_occurrence is empty
// unless requested.
// /rejects holds the key phrases of rejected pages, since these pages count in an evaluation.
const data::Schema& schema();

// Bits of the feature `indicators`.
enum Indicator : std::uint8_t {
  kBlock = 1,
  kInline = 2,
  kHeading = 4,
  kLeaf = 8,
  kBold = 16,
  kParentHeading = 32,
  kParentLeaf = 64,
  kParentBold = 128,
};

}  // namespace etc::openkp
