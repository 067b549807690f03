#include "etc_core/nn/blocks/feed_forward_block.h"

namespace etc {

namespace {

// The branch with dropout after the activation.   x [M, H] → [M, H]
Var dropped_branch(Tape& tape, const Var& x, const Dense& first, ops::Activation act, const Dense& second,
                   const Dropout& of_inner) {
  const Var inner = dropout(tape, activation(tape, linear(tape, x, first), act), of_inner);  // [M, F]
  return linear(tape, inner, second);
}

}  // namespace

Var FeedForwardBlock::forward(Tape& tape, const Var& x, const ForwardContext& context, const Dropout& dropout,
                              const Dropout& of_inner) const {
  const Dense first = context.dense(inner), second = context.dense(outer);
  const Var read = residual.input(tape, x, context);
  const Var branch = of_inner.rate > 0 ? dropped_branch(tape, read, first, activation, second, of_inner)
                                       : feed_forward(tape, read, first, activation, second);  // [M, H]
  return residual.output(tape, x, branch, dropout, context);
}

}  // namespace etc
