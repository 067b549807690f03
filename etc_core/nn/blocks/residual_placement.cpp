#include "etc_core/nn/blocks/residual_placement.h"

namespace etc {

Var ResidualPlacement::input(Tape& tape, const Var& x) const {
  return norm_at == NormPlacement::before ? layer_norm(tape, x, norm) : x;
}

Var ResidualPlacement::output(Tape& tape, const Var& x, const Var& branch, const Dropout& dropped) const {
  if (alpha == nullptr && norm_at == NormPlacement::after) {
    return residual_layer_norm(tape, x, branch, norm, dropped);
  }
  const Var sum = alpha != nullptr ? scaled_residual(tape, x, dropout(tape, branch, dropped), *alpha)
                                   : residual(tape, x, branch, dropped);
  return norm_at == NormPlacement::after ? layer_norm(tape, sum, norm) : sum;
}

}  // namespace etc
