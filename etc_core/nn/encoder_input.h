// The input of one encoder call: a ragged batch in plain arrays, with labels already built.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/autograd/tape.h"
#include "sparse/labels/labels.h"

namespace etc {

// The memory that each layer keeps of earlier segments of the same texts (segment_memory.h).
struct LayerMemory {
  std::vector<std::int64_t> offsets;  // [B+1]: rows of each example; empty if there is no memory
  std::vector<Tensor> states;         // [layers], [offsets.back(), H] each

  bool empty() const { return offsets.empty(); }
};

struct EncoderInput {
  // Example b owns long tokens long_offsets[b] … long_offsets[b+1]-1 and global tokens global_offsets[b] …
  // global_offsets[b+1]-1.
  std::vector<std::int64_t> long_offsets{0};    // [B+1]
  std::vector<std::int64_t> global_offsets{0};  // [B+1]

  std::vector<std::int32_t> token_ids;            // [T]
  std::vector<std::int32_t> global_token_ids;     // [U]
  std::vector<std::int32_t> segment_ids;          // [T]; empty: all 1
  std::vector<std::int32_t> global_segment_ids;   // [U]; empty: all 0
  std::vector<std::int32_t> position_ids;         // [T]; empty: 0 … L-1 of each example
  std::vector<std::int32_t> global_position_ids;  // [U]; empty: 0 … G-1 of each example
  Var long_embedding_adder;                       // [T, H]; undefined: none
  Var global_embedding_adder;                     // [U, H]; undefined: none

  sparse::AttentionLabels labels;
  LayerMemory memory;  // for causal encoders with memory: EncoderStates::memory of the previous segments

  // Position of each example in the run's stream of samples; part of the dropout key. Empty: 0 … B-1.
  std::vector<std::int64_t> sample_ordinals;  // [B]

  std::int64_t batch() const { return static_cast<std::int64_t>(long_offsets.size()) - 1; }  // B
  std::int64_t long_tokens() const { return long_offsets.back(); }                           // T
  std::int64_t global_tokens() const { return global_offsets.back(); }                       // U
};

}  // namespace etc
