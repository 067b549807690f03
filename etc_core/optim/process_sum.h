// The sum of all micro-batches' gradients, computed by several processes, with the same bits as by one process.
//
//   leaves      0   1   2   3   4   5        two processes, 0-2 and 3-5
//   roots      (0+1)    2 │ 3  (4+5)         each adds the complete subtrees over its leaves; these roots are sent
//   owners     of every bucket of parameters rank 0 owns the first half of the numbers, rank 1 the second (shards.h);
//              each adds its numbers of all roots in the tree's order, ((0+1)+(2+3))+(4+5)
//   spread     every process gets the results of all owners; with divided moments the new weights are sent instead
//
// Every number is added once, by its owner, and all links carry the same load: a process sends each of its roots except
// for its own share, and its own share of the result to all others. With one root each, R processes and a gradient of S
// bytes, that is 2·(R-1)·S bytes in all, the minimum for one reduction and one broadcast.
//
// A bucket of a root is sent as soon as its last gradient is final, while the backward pass computes the gradients of
// earlier buckets; the same holds for its sum. The order of arrival has no influence on the result: the numbers of the
// leaves alone decide which process adds which numbers, and in which order.
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
  // What finish() returns: all sums, or only those of the owned numbers (if the new weights will be sent instead).
  enum class Result { whole, own_share };

  // Division and parameters must outlive this object.
  ProcessSum(const Division& division, ParameterSet& parameters, Result result);
  ~ProcessSum();

  // Begins a batch. of_rank: the leaves that each rank computes, consecutive in the order of the ranks. A collective
  // call, like finish().
  void begin(std::span<const LeafRange> of_rank);

  // Takes over one parameter's gradient of an own leaf, which must be final (Tape::announce_final); leaves in order.
  void take(std::int64_t leaf, const Parameter& parameter);
  // The same for all parameters not taken yet, which ends the leaf. Throws Error when a taken one has a gradient again.
  void take_rest(std::int64_t leaf);

  // One gradient per parameter, undefined where no micro-batch of any process had one. With Result::own_share, numbers
  // that this process does not own are unspecified.
  GradientSet finish();

 private:
  class Batch;  // state of the current batch, if there are several processes
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
