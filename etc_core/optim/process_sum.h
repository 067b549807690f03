// The sum of all micro-batches' gradients when several processes computed them, with the bits of one process.
//
//   leaves      0   1   2   3   4   5        two processes, 0-2 and 3-5
//   roots      (0+1)    2 │ 3  (4+5)         each adds what is complete within its leaves; these roots travel
//   owners     of every bucket of parameters rank 0 owns the first half of the numbers, rank 1 the second (shards.h);
//              each adds its numbers of all roots in the tree's order, ((0+1)+(2+3))+(4+5)
//   spread     everybody gets everybody's result; with divided moments the new weights go instead
//
// Every number is added once, by its owner, and all links carry the same: a process sends each of its roots but for its
// own share, and its own share of the result to all others. With one root each, R processes and a gradient of S bytes,
// that is 2·(R-1)·S bytes in all: what one reduction and one broadcast take at least.
//
// A bucket of a root goes on its way as soon as its last gradient is final, while the backward pass computes those of the
// buckets before it; and so does its sum. When what arrives has no influence on the result: who adds what in which order
// is decided by the numbers of the leaves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "etc_core/optim/accumulator.h"
#include "etc_core/optim/shards.h"

namespace etc {

// Neighbouring micro-batches of a batch.
struct LeafRange {
  std::int64_t first = 0, end = 0;
};

class ProcessSum : NotCopied {
 public:
  // What finish() returns: everybody's sums, or (the weights will travel in their place) those of the own numbers alone.
  enum class Result { whole, own_share };

  // Both must outlive this.
  ProcessSum(const Division& division, ParameterSet& parameters, Result result);
  ~ProcessSum();

  // A batch begins, of which each rank computes these leaves, one rank's behind those of the ranks before. A call of all
  // processes, like finish().
  void begin(std::span<const LeafRange> of_rank);

  // Takes over what one parameter's gradient of the own leaf is: it does not change any more (Tape::announce_final).
  // Leaves in rising order.
  void take(std::int64_t leaf, const Parameter& parameter);
  // The same for all parameters not taken yet: the leaf is over. Throws Error when a taken one has a gradient again.
  void take_rest(std::int64_t leaf);

  // One gradient per parameter, undefined where no micro-batch of any process had one. Result::own_share: the numbers
  // this process does not own hold anything.
  GradientSet finish();

 private:
  class Batch;  // what several processes need while one is computed
  void take_number(std::int64_t leaf, std::size_t parameter);

  const Division& division_;
  ParameterSet& parameters_;
  const Result result_;
  std::map<const Parameter*, std::size_t> number_of_;
  std::vector<bool> taken_;  // of the current leaf
  GradientAccumulator accumulator_;
  std::unique_ptr<Batch> batch_;  // null: one process
};

}  // namespace etc
