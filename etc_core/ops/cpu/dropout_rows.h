// Which stream and token the rows of a ragged block of hidden states have.
#pragma once

#include <algorithm>
#include <cstdint>

#include "etc_core/ops/dropout.h"

namespace etc::ops::cpu {

// Walks rows in order from `first_row`; with rate 0 it knows nothing and is not asked.
class DropoutRows {
 public:
  DropoutRows(const HiddenDropout& dropout, std::int64_t first_row) : dropout_(dropout), row_(first_row) {
    if (!active()) return;
    // The last example that begins at or before the row; empty examples before it are passed over.
    const std::int64_t* end = dropout.offsets + dropout.examples + 1;
    example_ = std::upper_bound(dropout.offsets, end, first_row) - dropout.offsets - 1;
    take_key();
  }

  bool active() const { return dropout_.rate > 0; }
  std::uint64_t key() const { return key_; }
  std::uint32_t token() const { return static_cast<std::uint32_t>(row_ - dropout_.offsets[example_]); }
  std::uint32_t threshold() const { return dropout_threshold(dropout_.rate); }
  float scale() const { return 1.0f / (1.0f - dropout_.rate); }

  // To the next row, which must exist when anything is asked afterwards.
  void next() {
    ++row_;
    if (!active()) return;
    const std::int64_t before = example_;
    // More than one step where examples have no rows of this side (no global tokens).
    while (example_ < dropout_.examples && row_ >= dropout_.offsets[example_ + 1]) ++example_;
    if (example_ != before && example_ < dropout_.examples) take_key();
  }

 private:
  void take_key() {
    key_ = dropout_key(dropout_.seed, dropout_.sample_ordinals[example_], dropout_.layer, dropout_.site);
  }

  const HiddenDropout& dropout_;
  std::int64_t row_;          // of the block [M, H]
  std::int64_t example_ = 0;  // that owns it
  std::uint64_t key_ = 0;     // stream of that example, layer and site; computed once per example
};

}  // namespace etc::ops::cpu
