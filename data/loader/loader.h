// The order in which examples are used: epochs, shuffling, sharding by rank, batches, a reader thread ahead.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset.h"

namespace etc::data {

struct LoaderOptions {
  std::int64_t batch_examples = 1;  // examples of one optimiser batch over all ranks
  // Instead: long + global tokens of one at most, pairs of like lengths together (token_batches.h); 0: by examples.
  // Batches then end with their epoch, and none is partial.
  std::int64_t batch_tokens = 0;
  bool padded_batches = false;  // with batch_tokens: TokenBudget::padded
  // Long + global tokens of one micro-batch at most (one example may exceed it); 0: no cut.
  std::int64_t micro_batch_tokens = 0;
  bool shuffle = true;  // false: source order
  std::uint64_t seed = 1;
  // Not 0: examples go on in each other and are used in so many streams side by side (stream_order, data/loader/order.h),
  // as many as a batch has; nothing is shuffled.
  std::int64_t streams = 0;
  // Of several processes this one takes its share of each batch's micro-batches (share_of, data/loader/order.h).
  std::int64_t rank = 0, ranks = 1;
  std::int64_t epochs = 0;  // 0: without end
  // A partial batch (at the end of the run, or without carry_partial of every epoch) is left out.
  bool drop_last = false;
  // A last partial batch of an epoch is filled from the next one (training); false: it is handed out short
  // (evaluation).
  bool carry_partial = true;
  std::int64_t prefetch_batches = 2;  // batches read ahead by a thread; 0: next() reads itself
};

// Position after the last batch handed out: enough to continue bit-equally.
struct LoaderPosition {
  std::int64_t samples = 0;  // samples used since the start of the run, over all ranks, dropped ones included
};

struct LoadedExample {
  std::int64_t index = 0;           // in the data set
  std::int64_t sample_ordinal = 0;  // position in the run's endless stream of samples: keys dropout
  Example features;
  std::int64_t epoch = 0;  // that the sample belongs to: keys what is drawn afresh in each
};

// One optimiser batch, cut into micro-batches, which do not depend on how many ranks there are.
struct LoadedBatch {
  std::vector<std::vector<LoadedExample>> micro_batches;  // this rank's; none when the batch has fewer than ranks
  std::int64_t first_micro_batch = 0;                     // the number in the batch of the first of them
  std::int64_t all_micro_batches = 0;                     // over all ranks
  std::int64_t examples = 0;                              // on this rank
  std::int64_t all_examples = 0;                          // over all ranks
  std::int64_t epoch = 0;                                 // of the first example
  LoaderPosition after;
};

// Index of sample `ordinal` of a run over n examples: a pure function of (seed, ordinal), so any position can be taken
// up at once. Shuffled: a fresh pseudo-random permutation per epoch (data/loader/order.h).
class Loader {
 public:
  // Throws Error for an empty data set, options out of range, and drop_last where no batch would ever be full.
  Loader(std::shared_ptr<const DatasetReader> reader, LoaderOptions options, LoaderPosition start = {});
  ~Loader();  // stops the reader thread

  // False at the end. Rethrows here what the reader thread met.
  bool next(LoadedBatch& batch);

  // Batches that start in an epoch, at most; 0 only when drop_last leaves none.
  std::int64_t batches_per_epoch() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
