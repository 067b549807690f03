// Maps the rows of a ragged block of hidden states to dropout streams and token numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "etc_core/ops/dropout.h"

namespace etc::ops::cpu {

// Iterates over rows in order from `first_row`. With rate 0, key() and token() must not be called.
class DropoutRows {
 public:
  DropoutRows(const HiddenDropout& dropout, std::int64_t first_row) : dropout_(dropout), row_(first_row) {
    if (!active()) return;
    // The last example that begins at or before the row; empty examples before it are skipped.
    const std::int64_t* end = dropout.offsets + dropout.examples + 1;
    example_ = std::upper_bound(dropout.offsets, end, first_row) - dropout.offsets - 1;
    take_key();
  }

  bool active() const { return dropout_.rate > 0; }
  std::uint64_t key() const { return key_; }
  std::uint32_t token() const { return static_cast<std::uint32_t>(row_ - dropout_.offsets[example_]); }
  std::uint32_t threshold() const { return dropout_threshold(dropout_.rate); }
  float scale() const { return 1.0f / (1.0f - dropout_.rate); }

  // Moves to the next row, which must exist if key() or token() is called afterwards.
  void next() {
    ++row_;
    if (!active()) return;
    const std::int64_t before = example_;
    // More than one step if examples have no rows of this kind (for example no global tokens).
    while (example_ < dropout_.examples && row_ >= dropout_.offsets[example_ + 1]) ++example_;
    if (example_ != before && example_ < dropout_.examples) take_key();
  }

 private:
  void take_key() {
    key_ = dropout_key(dropout_.seed, dropout_.sample_ordinals[example_], dropout_.layer, dropout_.site);
  }

  const HiddenDropout& dropout_;
  std::int64_t row_;          // of the block [M, H]
  std::int64_t example_ = 0;  // the example that owns the row
  std::uint64_t key_ = 0;     // stream of the example, layer and site; computed once per example
};

}  // namespace etc::ops::cpu
