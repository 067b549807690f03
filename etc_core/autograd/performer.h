// Linear attention (sparse/performer.h) as a function on a tape.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/tape.h"

namespace etc {

// Data of a batch that all layers share; closures hold it.
struct PerformerBatch {
  std::vector<std::int64_t> query_offsets;  // [B+1]
  std::vector<std::int64_t> key_offsets;    // [B+1]
  std::int64_t heads = 0;                   // N
  std::int64_t head_size = 0;               // D
  bool causal = false;
  float scale = 0;  // of q·k; 0: 1/sqrt(D)
};

struct PerformerColumns {
  Columns q;     // [queries, N·D]
  Columns k, v;  // [keys, N·D]
};

// out [queries, N·D] with the features of `projection` [m, D], which gets no gradient. Saves the three inputs, out, its
// denominators and the sums over keys: nothing of size tokens·m.
// Throws Error where the device has no such kernel.
Var performer(Tape& tape, const std::shared_ptr<const PerformerBatch>& batch, const Tensor& projection,
              const PerformerColumns& inputs);

}  // namespace etc
