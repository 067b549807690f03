// Residual scores of linear attention. A sum of scores over layers is the product of queries and keys that are joined
// side by side, head by head (relative-positions 9 and 12):
//   sum_l q_l·k_l = [q_0 … q_l]·[k_0 … k_l]
#pragma once

#include <cstdint>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/tape.h"

namespace etc {

// The heads of a pass's tokens: N of D columns each.
struct HeadSizes {
  std::int64_t heads = 0, head_size = 0;
};

// Rows with a head each: columns [T, N·D] → [T·N, D].
Var head_rows(Tape& tape, const Columns& columns, HeadSizes sizes);

// Head by head, the columns of earlier layers and then those of one more: before [T, N·B], own [T·N, D] →
// [T, N·(B+D)]. `before` may be undefined: B = 0.
Var join_heads(Tape& tape, const Var& before, const Var& own, HeadSizes sizes);

// Head by head, the own columns and then zeros: own [T·N, D] → [T, N·parts·D].
Var pad_heads(Tape& tape, const Var& own, std::int64_t parts, HeadSizes sizes);

// Head by head, the first D columns: x [T, N·parts·D] → [T, N·D].
Var first_of_heads(Tape& tape, const Var& x, std::int64_t parts, HeadSizes sizes);

}  // namespace etc
