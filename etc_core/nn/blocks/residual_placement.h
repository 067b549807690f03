// Where a block's layer norm and residual sum stand: the one difference between Post-LN and Pre-LN.
//
//   after:   y = layer_norm(x + dropout(block(x)))       Post-LN (Vaswani et al. 2017; etc-core 5.4)
//   before:  y = x + dropout(block(layer_norm(x)))       Pre-LN (etc-core 6.4, use_pre_activation_order)
#pragma once

#include "etc_core/nn/blocks/forward_context.h"

namespace etc {

enum class NormPlacement { after, before };

struct ResidualPlacement {
  NormPlacement norm_at = NormPlacement::after;
  LayerNormParameters norm;  // [H]

  // What the block reads.   x, result [M, H]
  Var input(Tape& tape, const Var& x) const;
  // y.   x, branch = block(input(x)), result [M, H]
  Var output(Tape& tape, const Var& x, const Var& branch, const Dropout& dropout) const;
};

}  // namespace etc
