// Sums the gradients of an optimiser batch's micro-batches in the order of one tree (tree_sum.h).
//
// Why not simply one after the other into one buffer, which would need no second one: the tree is what several
// processes can reproduce, each adding the complete subtrees over its own micro-batches; results then do not depend on
// how many processes there are. Its rounding errors are also smaller. The price is memory: at most
// floor(log2(n-1))+1 sets besides the current one for n micro-batches (n = 1: none, n = 2: one), of a process that
// begins inside a batch at most twice as many.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/nn/parameters.h"
#include "etc_core/optim/tree_sum.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

// One gradient per parameter, in the order of the ParameterSet; undefined: none.
using GradientSet = std::vector<Tensor>;

// Moves the gradients out of the parameters, which then have none; and back.
GradientSet take_gradients(ParameterSet& parameters);
void put_gradients(ParameterSet& parameters, GradientSet gradients);

class GradientAccumulator {
 public:
  // A parameter without gradient in one set keeps that of the other. Throws Error when number or sizes change.
  struct AddSets {
    GradientSet operator()(GradientSet left, GradientSet right) const;  // in the memory of left
  };
  using Tree = TreeSum<GradientSet, AddSets>;
  using Root = Tree::Root;

  // Takes over the gradients of micro-batch number `leaf` of the batch; they are added to in place. In rising order,
  // without gaps.
  void add(std::int64_t leaf, GradientSet gradients) { tree_.push({0, leaf}, std::move(gradients)); }

  // The sums of complete subtrees that are left, in the order of their leaves. The accumulator is empty again.
  std::vector<Root> take_roots() { return tree_.take_roots(); }

  // The sum of all; an empty set if no micro-batch was added. The accumulator is empty again.
  GradientSet finish() { return tree_.finish().value_or(GradientSet()); }

 private:
  Tree tree_{AddSets()};
};

}  // namespace etc
