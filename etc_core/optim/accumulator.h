// Sums the gradients of an optimiser batch's micro-batches as a pairwise tree in a fixed order.
//
//   g = ((g₀+g₁) + (g₂+g₃)) + …      neighbours first; a lone last one joins the finished trees before it
// Why not simply one after the other into one buffer, which would need no second one: the tree is what several
// processes can reproduce, each summing an aligned run of 2^k micro-batches and exchanging one set; results then do not
// depend on how many processes there are. Its rounding errors are also smaller. The price is memory: at most
// floor(log2(n-1))+1 sets besides the current one for n micro-batches (n = 1: none, n = 2: one).
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/nn/parameters.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

// One gradient per parameter, in the order of the ParameterSet; undefined: none.
using GradientSet = std::vector<Tensor>;

// Moves the gradients out of the parameters, which then have none; and back.
GradientSet take_gradients(ParameterSet& parameters);
void put_gradients(ParameterSet& parameters, GradientSet gradients);

// A binary counter of sets: level k holds the sum of 2^k micro-batches, or nothing.
class GradientAccumulator {
 public:
  // Takes over the gradients of the next micro-batch; they are added to in place. A parameter without gradient in one
  // micro-batch keeps that of the others. Throws Error when the number or sizes of gradients change.
  void add(GradientSet gradients);

  std::int64_t count() const { return count_; }  // micro-batches since the last finish()

  // The sum of all, which may be empty sets if no micro-batch was added. The accumulator is empty again.
  GradientSet finish();

 private:
  std::vector<GradientSet> levels_;  // an empty set: level not in use
  std::int64_t count_ = 0;
};

}  // namespace etc
