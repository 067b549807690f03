// The two sparse attention operators (sparse/long_attention.h, sparse/global_attention.h) as functions on a tape.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "etc_core/autograd/functions.h"
#include "etc_core/autograd/parameter.h"
#include "etc_core/autograd/tape.h"
#include "sparse/score_state.h"
#include "sparse/visible_tiles.h"

namespace etc {

// What the attention of one batch shares over all layers and between forward and backward. Closures hold it; it does
// not move (the scores point at the tiles).
struct AttentionBatch {
  sparse::LongTiles long_tiles;
  sparse::GlobalTiles global_tiles;
  bool long_relative = false;  // whether labels select relative vectors
  bool global_relative = false;
  std::int64_t heads = 0;                   // N
  std::int64_t head_size = 0;               // D
  float dropout_rate = 0;                   // of the probabilities
  ComputeType compute = ComputeType::fp32;  // of the products; on the CPU bf16 only on tapes that do not record
  std::uint64_t seed = 0;
  std::vector<std::int64_t> sample_ordinals;  // [B]
  std::optional<sparse::ScoreState> scores;   // of this forward; none: plain attention
};

// N·D neighbouring columns of a variable. A recording tape takes only whole variables (first = 0, no other columns).
struct Columns {
  Var var;
  std::int64_t first = 0;
};

struct RelativeParameters {
  Parameter* vectors = nullptr;  // [R, N, D]; null: none
  Parameter* biases = nullptr;   // [R, N]
};

// One operator's inputs: queries, keys and values of its own side, keys and values of the other.
struct AttentionInputs {
  Columns q, k, v;              // long_attention: [T, N·D]; global_attention: [U, N·D]
  Columns other_k, other_v;     // long_attention: [U, N·D]; global_attention: [T, N·D]
  RelativeParameters relative;  // read only where the batch's labels are relative
};

// out [T, N·D] (long) or [U, N·D] (global); formulas in the operators' headers. Saves the five inputs, out and the
// log-sum-exp. With running scores, layers must be called in order, and in backward in reverse order (ScoreState says
// which calls are errors); a result without gradient then still walks the scores back.
Var long_attention(Tape& tape, const std::shared_ptr<AttentionBatch>& batch, std::int64_t layer, Pass pass,
                   const AttentionInputs& inputs);
Var global_attention(Tape& tape, const std::shared_ptr<AttentionBatch>& batch, std::int64_t layer, Pass pass,
                     const AttentionInputs& inputs);

}  // namespace etc
