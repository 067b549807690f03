// The order in which examples are used: epochs, shuffling, sharding by rank, batches, prefetching in a reader thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset.h"

namespace etc::data {

struct LoaderOptions {
  std::int64_t batch_examples = 1;  // examples of one optimiser batch over all ranks
  // Not 0: replaces batch_examples. A batch has at most this many long + global tokens, and pairs of similar lengths
  // are grouped (token_batches.h); batches then end with their epoch, and none is partial.
  std::int64_t batch_tokens = 0;
  bool padded_batches = false;  // with batch_tokens: TokenBudget::padded
  // Long + global tokens of one micro-batch at most (one example may exceed it); 0: no cut.
  std::int64_t micro_batch_tokens = 0;
  // Not 0: micro-batches also end after every so many examples of a batch, so that a batch several times as large is cut
  // as the smaller ones are.
  std::int64_t micro_batch_unit = 0;
  bool shuffle = true;  // false: source order
  std::uint64_t seed = 1;
  // Not 0: each example continues the one before. The data set is split into this many parallel streams (stream_order,
  // data/loader/order.h), one per example of a batch; nothing is shuffled.
  std::int64_t streams = 0;
  // This process loads its share of each batch's micro-batches (share_of, data/loader/order.h).
  std::int64_t rank = 0, ranks = 1;
  std::int64_t epochs = 0;  // 0: without end
  // The last partial batch of an epoch is filled from the next one (training); false: it is returned short
  // (evaluation).
  bool carry_partial = true;
  std::int64_t prefetch_batches = 2;  // batches read ahead by a thread; 0: next() reads itself
};

// Position after the last batch returned; it suffices to resume bit-equally.
struct LoaderPosition {
  std::int64_t samples = 0;  // samples used since the start of the run, over all ranks
};

struct LoadedExample {
  std::int64_t index = 0;           // in the data set
  std::int64_t sample_ordinal = 0;  // position in the run's endless stream of samples: key of dropout
  Example features;
  std::int64_t epoch = 0;  // that the sample belongs to: key of what is drawn anew in each epoch
};

// One optimiser batch, cut into micro-batches, which do not depend on how many ranks there are.
struct LoadedBatch {
  std::vector<std::vector<LoadedExample>> micro_batches;  // this rank's; none when the batch has fewer than ranks
  std::int64_t first_micro_batch = 0;                     // number of the first of them within the batch
  std::int64_t all_micro_batches = 0;                     // over all ranks
  std::int64_t examples = 0;                              // on this rank
  std::int64_t all_examples = 0;                          // over all ranks
  std::int64_t epoch = 0;                                 // of the first example
  LoaderPosition after;
};

// Returns the batches of a run. Which example a sample is, is a pure function of options and ordinal, so a run can
// start at any position without replaying. Shuffling: a new pseudo-random permutation per epoch (data/loader/order.h).
class Loader {
 public:
  // Throws Error for an empty data set and options out of range.
  Loader(std::shared_ptr<const DatasetReader> reader, LoaderOptions options, LoaderPosition start = {});
  ~Loader();  // stops the reader thread

  // False at the end. Rethrows exceptions of the reader thread.
  bool next(LoadedBatch& batch);

  // Upper bound of the batches that start in an epoch.
  std::int64_t batches_per_epoch() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
