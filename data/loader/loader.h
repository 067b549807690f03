// The order in which examples are used: epochs, shuffling, sharding by rank, batches, a reader thread ahead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "data/dataset.h"

namespace etc::data {

struct LoaderOptions {
  std::int64_t batch_examples = 1;  // examples of one optimiser batch over all ranks
  std::int64_t micro_batch_tokens =
      0;                // long + global tokens of one micro-batch at most (one example may exceed it); 0: no cut
  bool shuffle = true;  // false: source order
  std::uint64_t seed = 1;
  std::int64_t rank = 0, ranks = 1;  // this process takes every ranks-th example of each batch
  std::int64_t epochs = 0;           // 0: without end
  bool drop_last = false;
  // A last partial batch of an epoch is filled from the next one (training); false: it is handed out short
  // (evaluation).
  bool carry_partial = true;
  std::int64_t prefetch_batches = 2;
};

// Position after the last batch handed out: enough to continue bit-equally.
struct LoaderPosition {
  std::int64_t samples = 0;  // samples handed out since the start of the run, over all ranks
};

struct LoadedExample {
  std::int64_t index = 0;           // in the data set
  std::int64_t sample_ordinal = 0;  // position in the run's endless stream of samples: keys dropout
  Example features;
};

// One optimiser batch, cut into micro-batches.
struct LoadedBatch {
  std::vector<std::vector<LoadedExample>> micro_batches;
  std::int64_t examples = 0;      // on this rank
  std::int64_t all_examples = 0;  // over all ranks
  std::int64_t epoch = 0;         // of the first example
  LoaderPosition after;
};

// Index of sample `ordinal` of a run over n examples: a pure function of (seed, ordinal), so any position can be taken
// up at once. Shuffled: a fresh pseudo-random permutation per epoch.
class Loader {
 public:
  Loader(std::shared_ptr<const DatasetReader> reader, LoaderOptions options, LoaderPosition start = {});
  ~Loader();  // stops the reader thread

  // False at the end. Rethrows here what the reader thread met.
  bool next(LoadedBatch& batch);
  std::int64_t batches_per_epoch() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etc::data
