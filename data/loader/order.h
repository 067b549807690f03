// The order of samples: pure functions of the options, used by the loader and by code that needs the order without
// reading examples.
//
// A run is one endless stream of samples with ordinals 0, 1, 2, …: epoch e of n examples owns ordinals e*n … e*n+n-1.
// Batches are ranges of ordinals. Nothing here depends on earlier calls, so a run can resume at any position.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/loader/loader.h"

namespace etc::data {

// The examples of one epoch in the order of their use: a pseudo-random permutation of 0 … n-1 (Fisher-Yates on Philox
// keyed by seed and epoch), or 0 … n-1 itself without shuffling. Memory 8n bytes, time about 10 ns per example.
std::vector<std::int64_t> epoch_order(std::int64_t n, std::int64_t epoch, std::uint64_t seed, bool shuffle);

// The order for examples that continue each other, in parallel streams: stream s has the consecutive examples
// n·s/streams … n·(s+1)/streams − 1. The order takes the first example of every stream, then the second of every
// stream, and so on; last come the final examples of the streams that are one longer. Rules: 1 <= streams <= n.
std::vector<std::int64_t> stream_order(std::int64_t n, std::int64_t streams);

// The order that the options select: stream_order, or the one above.
std::vector<std::int64_t> epoch_order(std::int64_t n, std::int64_t epoch, const LoaderOptions& options);

struct SampleRange {
  std::int64_t begin = 0, end = 0;  // ordinals
};

// The batch that starts at ordinal `start`; nullopt: the run is over. With carry_partial a batch may extend past the end
// of an epoch (or of several, when n is smaller than a batch) but not past the end of the run; without it, batches end
// with their epoch. Rules: n >= 1.
std::optional<SampleRange> batch_at(std::int64_t start, std::int64_t n, const LoaderOptions& options);

// Cuts a batch into micro-batches, greedily in order: each holds at most `limit` tokens, or a single example.
// tokens: of each example. Returns the sizes (in examples) of the micro-batches; limit 0: one for all. A micro-batch also
// ends after every `unit` examples of the batch; 0: nowhere else.
std::vector<std::int64_t> cut_micro_batches(std::span<const std::int64_t> tokens, std::int64_t limit,
                                            std::int64_t unit = 0);

// A contiguous range of n items.
struct Share {
  std::int64_t begin = 0, end = 0;
};

// The range of one rank: the ranks' ranges cover 0 … n-1 in order, with sizes that differ by at most 1; a range may be
// empty.
Share share_of(std::int64_t n, std::int64_t rank, std::int64_t ranks);

// Long plus global tokens of every example; a task without one of the classes counts 0 for it.
std::vector<std::int64_t> token_counts(const DatasetReader& reader);

// Only the global tokens of every example.
std::vector<std::int64_t> global_token_counts(const DatasetReader& reader);

// The micro-batches of a run that take the most memory, found from lengths alone.
struct HeaviestMicroBatches {
  // Each as indices of examples in the data set: the micro-batch with the most tokens and, if they differ, those with
  // the most pairs of a long and a global token of one example and with the most pairs of two long tokens (a dense
  // encoder's running scores).
  std::vector<std::vector<std::int64_t>> examples;
  std::int64_t most_of_a_batch = 0;  // largest number of micro-batches in one batch
};

// Considers the first `samples` samples of a run. Time: about 30 ns per sample. Rules: ranks is 1, samples at least one
// batch.
HeaviestMicroBatches heaviest_micro_batches(const DatasetReader& reader, const LoaderOptions& options,
                                            std::int64_t samples);

}  // namespace etc::data
