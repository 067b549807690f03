// The feed-forward block of a layer with its residual sum and layer norm (etc-core 6.3).
#pragma once

#include "etc_core/nn/blocks/residual_placement.h"
#include "etc_core/ops/activation_kind.h"

namespace etc {

struct FeedForwardBlock {
  Dense inner, outer;  // [H, F], [F, H]
  ops::Activation activation{};
  ResidualPlacement residual;

  // y = residual.output(x, drop(act(residual.input(x)·W1 + b1))·W2 + b2).   x, y [M, H]
  // of_inner: drop, the dropout after the activation. If its rate is 0, the activation is recomputed in backward
  // instead of being stored.
  Var forward(Tape& tape, const Var& x, const ForwardContext& context, const Dropout& dropout,
              const Dropout& of_inner = {}) const;

  bool same_weights(const FeedForwardBlock& other) const {
    return inner.parts[0].kernel == other.inner.parts[0].kernel;
  }
};

}  // namespace etc
