#include "etc_core/nn/blocks/residual_placement.h"

namespace etc {

Var ResidualPlacement::input(Tape& tape, const Var& x, const ForwardContext& context) const {
  return norm_at == NormPlacement::before ? layer_norm(tape, x, context.norm(norm)) : x;
}

Var ResidualPlacement::sum(Tape& tape, const Var& x, const Var& branch, const Dropout& dropped,
                           SkipWatch* watch) const {
  if (alpha != nullptr) return scaled_residual(tape, x, dropout(tape, branch, dropped), *alpha);
  if (omega != nullptr) {
    const Var added = dropout(tape, branch, dropped);
    if (watch != nullptr) watch->see(x.value(), added.value(), *omega);
    return scaled_residual(tape, added, x, *omega);
  }
  if (skip != 1) return scaled_residual(tape, dropout(tape, branch, dropped), x, skip);
  return residual(tape, x, branch, dropped);
}

Var ResidualPlacement::output(Tape& tape, const Var& x, const Var& branch, const Dropout& dropped,
                              const ForwardContext& context) const {
  const bool plain = alpha == nullptr && omega == nullptr && skip == 1, after = norm_at == NormPlacement::after;
  if (plain && after) return residual_layer_norm(tape, x, branch, context.norm(norm), dropped);
  const Var y = sum(tape, x, branch, dropped, context.skip_watch);
  return after ? layer_norm(tape, y, context.norm(norm)) : y;
}

}  // namespace etc
