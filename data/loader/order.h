// Which sample comes when: pure functions of the options, shared by the loader and whoever wants to know the order
// without reading anything.
//
// A run is one endless stream of samples with ordinals 0, 1, 2, …: epoch e of n examples owns ordinals e*n … e*n+n-1.
// Batches are ranges of ordinals. Nothing here depends on what was handed out before, so any position can be resumed.
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

// The same of examples that go on in each other, in streams side by side: stream s has the examples n·s/streams …
// n·(s+1)/streams − 1, one after the other, and the order is the first example of every stream, the second of every
// stream and so on; at last, of the streams that are one longer. Rules: 1 <= streams <= n.
std::vector<std::int64_t> stream_order(std::int64_t n, std::int64_t streams);

// As the options say.
std::vector<std::int64_t> epoch_order(std::int64_t n, std::int64_t epoch, const LoaderOptions& options);

struct SampleRange {
  std::int64_t begin = 0, end = 0;  // ordinals; samples between the end and the next batch are left out (drop_last)
};

// The batch that starts at ordinal `start` or, where a partial batch is dropped there, the next one. None: the run is
// over. With carry_partial a batch may reach over the end of an epoch (or of several, when n is smaller than a batch)
// but not over the end of the run; without it, batches end with their epoch. Rules: n >= 1.
std::optional<SampleRange> batch_at(std::int64_t start, std::int64_t n, const LoaderOptions& options);

// Cuts a batch into micro-batches, greedily in order: each holds at most `limit` tokens, or a single example.
// tokens: of each example. Returns the sizes (in examples) of the micro-batches; limit 0: one for all.
std::vector<std::int64_t> cut_micro_batches(std::span<const std::int64_t> tokens, std::int64_t limit);

// A contiguous part of n things.
struct Share {
  std::int64_t begin = 0, end = 0;
};

// The share of one rank: ranks one after the other own all of n, in parts as equal as can be; a rank may own nothing.
Share share_of(std::int64_t n, std::int64_t rank, std::int64_t ranks);

// Long plus global tokens of every example; a task without one of the classes counts 0 for it.
std::vector<std::int64_t> token_counts(const DatasetReader& reader);

// Global tokens of every example alone.
std::vector<std::int64_t> global_token_counts(const DatasetReader& reader);

// The micro-batches of a run that take the most memory, found from lengths alone.
struct HeaviestMicroBatches {
  // Indices of examples in the data set: the one with the most tokens and, where they are others, those with the most
  // pairs of a long and a global token of one example and with the most pairs of two long ones (a dense encoder's
  // running scores).
  std::vector<std::vector<std::int64_t>> examples;
  std::int64_t most_of_a_batch = 0;  // micro-batches of one batch, at most
};

// Of the first `samples` samples of a run. Time: about 30 ns per sample. Rules: ranks is 1, samples at least one batch.
HeaviestMicroBatches heaviest_micro_batches(const DatasetReader& reader, const LoaderOptions& options,
                                            std::int64_t samples);

}  // namespace etc::data
