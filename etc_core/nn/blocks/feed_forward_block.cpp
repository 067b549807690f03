#include "etc_core/nn/blocks/feed_forward_block.h"

namespace etc {

Var FeedForwardBlock::forward(Tape& tape, const Var& x, const ForwardContext& context, const Dropout& dropout) const {
  const Dense first = context.dense(inner), second = context.dense(outer);
  const Var branch = feed_forward(tape, residual.input(tape, x), first, activation, second);  // [M, H]
  return residual.output(tape, x, branch, dropout);
}

}  // namespace etc
