// The sum of all micro-batches' gradients when several processes computed them, with the bits of one process.
//
//   leaves      0   1   2   3   4   5        two processes, 0-2 and 3-5
//   roots      (0+1)    2 │ 3  (4+5)         each adds what is complete within its leaves; these roots travel
//   owners     rank 0: the first half of every root's numbers, rank 1: the second
//              each adds its numbers of all roots in the tree's order, ((0+1)+(2+3))+(4+5)
//   spread     everybody gets everybody's result (shards.h); with divided moments the new weights go instead
//
// Every number is added once, by its owner, and all links carry the same: a process sends each of its roots but for its
// own share, and its own share of the result to all others. With one root each, R processes and a gradient of S bytes,
// that is 2·(R-1)·S bytes in all: what one reduction and one broadcast take at least.
#pragma once

#include <vector>

#include "etc_core/optim/accumulator.h"
#include "etc_core/optim/shards.h"

namespace etc {

// roots: of this process, in the order of their leaves, which lie behind those of the ranks before; none when it had no
// micro-batch. Returns one gradient per parameter, undefined where no micro-batch of any process had one; the numbers
// this process owns are those of the whole sum, the others hold anything.
GradientSet sum_own_share(const Division& division, const ParameterSet& parameters,
                          std::vector<GradientAccumulator::Root> roots);

}  // namespace etc
