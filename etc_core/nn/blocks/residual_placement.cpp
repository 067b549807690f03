#include "etc_core/nn/blocks/residual_placement.h"

namespace etc {

Var ResidualPlacement::input(Tape& tape, const Var& x) const {
  return norm_at == NormPlacement::before ? layer_norm(tape, x, *norm.gamma, *norm.beta) : x;
}

Var ResidualPlacement::output(Tape& tape, const Var& x, const Var& branch, const Dropout& dropout) const {
  if (norm_at == NormPlacement::before) return residual(tape, x, branch, dropout);
  return residual_layer_norm(tape, x, branch, *norm.gamma, *norm.beta, dropout);
}

}  // namespace etc
