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
  // Where one is undefined, the other. Throws Error when the parameter's size changes.
  struct Add {
    std::size_t parameter = 0;
    Tensor operator()(Tensor left, Tensor right) const;  // in the memory of left
  };
  using Tree = TreeSum<Tensor, Add>;
  using Root = Tree::Root;

  // Takes over the gradients of micro-batch number `leaf` of the batch; they are added to in place. In rising order,
  // without gaps. Throws Error when the number of parameters or a size changes.
  void add(std::int64_t leaf, GradientSet gradients);

  // So with one of `parameters` gradients: parameter number `parameter`'s. Each parameter has its tree: their leaves need
  // not come together.
  void add(std::int64_t leaf, std::size_t parameter, std::size_t parameters, Tensor gradient);

  // The sums of complete subtrees that are left of a parameter, in the order of their leaves.
  const std::vector<Root>& roots(std::size_t parameter) const { return trees_[parameter].roots(); }

  // The sum of all; an empty set if no micro-batch was added. The accumulator is empty again.
  GradientSet finish();

  void clear() { trees_.clear(); }

 private:
  std::vector<Tree> trees_;  // by parameter
};

}  // namespace etc
