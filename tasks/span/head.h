// Output layers of the question answering tasks: a few logits per position, and logits of a whole example computed from
// its first token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/autograd/functions.h"
#include "etc_core/nn/parameters.h"

namespace etc::span {

// z = x·Wᵀ + b.   x [M, H] → z [M, n]
// Parameters "<prefix>output_weights" [n, H] (truncated normal) and "<prefix>output_bias" [n] (zeros), as in the
// reference.
class OutputLayer {
 public:
  // The reference's heads are initialised with this standard deviation, whatever the model's initializer_range is.
  static constexpr float kSpread = 0.02f;

  OutputLayer(ParameterSet& parameters, const std::string& prefix, std::int64_t outputs, std::int64_t hidden,
              float spread = kSpread);
  Var logits(Tape& tape, const Var& x) const;

 private:
  Dense dense_;
};

// The first row of every example, its CLS token: x [M, H], offsets [B+1] → [B, H]. Every example has a row.
Var first_rows(Tape& tape, const Var& x, const std::vector<std::int64_t>& offsets);

}  // namespace etc::span
