// The positions of a block's layer norm and residual sum, and whether a trained number scales the branch. Post-LN,
// Pre-LN and ReZero differ only in these.
//
//   after:   y = layer_norm(x + alpha·dropout(block(x)))   Post-LN (Vaswani et al. 2017; etc-core 5.4)
//   before:  y = x + alpha·dropout(block(layer_norm(x)))   Pre-LN (etc-core 6.4, use_pre_activation_order)
//   none:    y = x + alpha·dropout(block(x))               ReZero (Bachlechner et al. 2020; dense-transformer 1.2)
// Without alpha the factor is 1. The skip may be scaled instead; x is then replaced by
//   omega⊙x    by trained numbers, one per column         ADMIN (Liu et al. 2020; translation 3)
//   skip·x     by a number that depends on the depth      DeepNet (Wang et al. 2022; translation 3)
#pragma once

#include "etc_core/nn/blocks/forward_context.h"

namespace etc {

enum class NormPlacement { after, before, none };

// Observer that is called before each residual sum, once per pass, and may set omega at that point.
class SkipWatch {
 public:
  virtual ~SkipWatch() = default;
  // x [M, H], branch: after its dropout
  virtual void see(const Tensor& x, const Tensor& branch, Parameter& omega) = 0;
};

struct ResidualPlacement {
  NormPlacement norm_at = NormPlacement::after;
  LayerNormParameters norm;    // [H]; null with none
  Parameter* alpha = nullptr;  // [1]; null: 1
  Parameter* omega = nullptr;  // [H]; null: 1. Not together with alpha
  float skip = 1;              // not together with alpha or omega

  // The input of the block.   x, result [M, H]
  Var input(Tape& tape, const Var& x, const ForwardContext& context) const;
  // y.   x, branch = block(input(x)), result [M, H]
  Var output(Tape& tape, const Var& x, const Var& branch, const Dropout& dropout, const ForwardContext& context) const;

 private:
  Var sum(Tape& tape, const Var& x, const Var& branch, const Dropout& dropout, SkipWatch* watch) const;
};

}  // namespace etc
