// Sums the gradients of an optimiser batch's micro-batches in the order of one tree (tree_sum.h).
//
// Adding them one after the other into one buffer would need less memory. But several processes can reproduce the tree,
// each adding the complete subtrees over its own micro-batches, so that results do not depend on the number of
// processes. Its rounding errors are also smaller. The cost is memory: at most floor(log2(n-1))+1 sets besides the
// current one for n micro-batches (n = 1: none, n = 2: one); at most twice as many in a process whose micro-batches do
// not start at the beginning of the batch.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/nn/parameters.h"
#include "etc_core/optim/tree_sum.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

// One gradient per parameter, in the order of the ParameterSet; undefined: none.
using GradientSet = std::vector<Tensor>;

// Gives the parameters these gradients.
void put_gradients(ParameterSet& parameters, GradientSet gradients);

class GradientAccumulator {
 public:
  // left + right; if one is undefined, the other. Throws Error when the parameter's size changes.
  struct Add {
    std::size_t parameter = 0;
    Tensor operator()(Tensor left, Tensor right) const;  // in the memory of left
  };
  using Tree = TreeSum<Tensor, Add>;
  using Root = Tree::Root;

  // Takes over the gradients of micro-batch number `leaf` of the batch and uses their memory for sums. Leaves must come
  // in rising order without gaps. Throws Error when the number of parameters or a size changes.
  void add(std::int64_t leaf, GradientSet gradients);

  // The same for the gradient of a single parameter, number `parameter` of `parameters`. Each parameter has its own
  // tree, so the gradients of a leaf may be added at different times.
  void add(std::int64_t leaf, std::size_t parameter, std::size_t parameters, Tensor gradient);

  // The sums of a parameter's complete subtrees that are not combined yet, in the order of their leaves.
  const std::vector<Root>& roots(std::size_t parameter) const { return trees_[parameter].roots(); }

  // Returns the sum of all gradients, or an empty set if no micro-batch was added, and empties the accumulator.
  GradientSet finish();

  void clear() { trees_.clear(); }

 private:
  std::vector<Tree> trees_;  // by parameter
};

}  // namespace etc
