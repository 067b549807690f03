// The biases of Transformer-XL's relative positions in the form that the attention operator takes.
//
// Transformer-XL's score adds one vector to the query in the product with keys and another in the product with
// positions (Dai et al., 2019, section 3.3, terms a to d):
//   e_ij = ((q_i + u)·k_j + (q_i + v)·r_m) / sqrt(D),   r_m = W_R·R_m,   m = i - j
// With q' = q + u that is (q'·k_j + q'·r_m + (v - u)·r_m) / sqrt(D): a query, a table rel = r, and one number per
// position and head, rel_bias = (v - u)·r.
#pragma once

#include <cstdint>

#include "etc_core/autograd/parameter.h"
#include "etc_core/autograd/tape.h"

namespace etc {

// u and v of all heads, [N, D] each; null: 0.
struct QueryBiases {
  Parameter* content = nullptr;   // u, already added to the query
  Parameter* position = nullptr;  // v
};

// y_rn = sum_c (v - u)_nc rel_rnc.   rel [R, N·D] → y [R, N].   Saves nothing but rel, which attention saves too.
// Gradients: drel_rnc += dy_rn (v - u)_nc,  dv_nc += sum_r dy_rn rel_rnc,  du the negative; sums over r in order.
// Rules: throws Error when rel is no matrix of whole heads or a bias has another shape.
Var position_bias(Tape& tape, const Var& rel, std::int64_t heads, const QueryBiases& biases);

}  // namespace etc
