#include "data/loader/order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "data/loader/sample_order.h"
#include "etc_core/base/random.h"

namespace etc::data {

namespace {

constexpr std::uint64_t kOrderStream = 0x6f72646572ull;  // "order": a stream that no other use of the seed shares

__extension__ typedef unsigned __int128 Wide;

// Uniform in [0, bound) up to a bias of bound / 2^64: draw number `draw` of the epoch's stream.
std::uint64_t below(std::uint64_t bound, std::uint64_t draw, std::uint64_t key) {
  const Philox4 words = philox({static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32), 0, 0}, key);
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<std::uint64_t>((Wide{bits} * bound) >> 64);
}

// Lengths of an align class, all 0 when no feature belongs to it.
std::vector<std::int64_t> lengths_of(const DatasetReader& reader, const std::string& align) {
  const auto& features = reader.schema().features;
  const bool known =
      std::any_of(features.begin(), features.end(), [&](const FeatureSpec& spec) { return spec.align == align; });
  if (!known) return std::vector<std::int64_t>(static_cast<std::size_t>(reader.size()), 0);
  const auto lengths = reader.lengths(align);
  return {lengths.begin(), lengths.end()};
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t n, std::int64_t epoch, std::uint64_t seed, bool shuffle) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!shuffle) return order;
  const std::uint64_t key = mix_key(mix_key(seed, kOrderStream), static_cast<std::uint64_t>(epoch));
  for (std::uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i, i, key)]);
  return order;
}

std::vector<std::int64_t> stream_order(std::int64_t n, std::int64_t streams) {
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(n));
  const std::int64_t longest = (n + streams - 1) / streams;
  for (std::int64_t t = 0; t < longest; ++t) {
    for (std::int64_t s = 0; s < streams; ++s) {
      const std::int64_t begin = n * s / streams, end = n * (s + 1) / streams;
      if (begin + t < end) order.push_back(begin + t);
    }
  }
  return order;
}

std::vector<std::int64_t> epoch_order(std::int64_t n, std::int64_t epoch, const LoaderOptions& options) {
  return options.streams > 0 ? stream_order(n, options.streams) : epoch_order(n, epoch, options.seed, options.shuffle);
}

std::optional<SampleRange> batch_at(std::int64_t start, std::int64_t n, const LoaderOptions& options) {
  const std::int64_t run_end = options.epochs > 0 ? options.epochs * n : INT64_MAX;
  if (start >= run_end) return std::nullopt;
  const std::int64_t epoch_end = (start / n + 1) * n;
  const std::int64_t limit = options.carry_partial ? run_end : epoch_end;
  return SampleRange{start, start + std::min(options.batch_examples, limit - start)};
}

std::vector<std::int64_t> cut_micro_batches(std::span<const std::int64_t> tokens, std::int64_t limit,
                                            std::int64_t unit) {
  std::vector<std::int64_t> sizes;
  std::int64_t held = 0, examples = 0;
  for (const std::int64_t count : tokens) {
    const bool unit_ends = unit > 0 && examples % unit == 0;
    // Written as a difference: a limit near the largest integer must not overflow.
    if (sizes.empty() || unit_ends || (limit > 0 && count > limit - held)) {
      sizes.push_back(0);
      held = 0;
    }
    ++sizes.back();
    ++examples;
    held += count;
  }
  return sizes;
}

Share share_of(std::int64_t n, std::int64_t rank, std::int64_t ranks) {
  return {n * rank / ranks, n * (rank + 1) / ranks};
}

std::vector<std::int64_t> token_counts(const DatasetReader& reader) {
  std::vector<std::int64_t> counts = lengths_of(reader, reader.schema().long_align);
  const std::vector<std::int64_t> globals = global_token_counts(reader);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += globals[i];
  return counts;
}

std::vector<std::int64_t> global_token_counts(const DatasetReader& reader) {
  return lengths_of(reader, reader.schema().global_align);
}

HeaviestMicroBatches heaviest_micro_batches(const DatasetReader& reader, const LoaderOptions& options,
                                            std::int64_t samples) {
  SampleOrder order(reader, options);
  const std::vector<std::int64_t>& tokens = order.tokens();
  const std::vector<std::int64_t> globals = global_token_counts(reader);
  HeaviestMicroBatches heaviest;
  struct Most {
    std::int64_t weight = -1;
    std::vector<std::int64_t> examples;
  };
  std::array<Most, 3> most;  // of tokens, of pairs of a long and a global token, of pairs of two long ones
  std::vector<std::int64_t> batch, sizes_in_tokens;
  for (std::int64_t start = 0; start < samples;) {
    const auto range = order.batch_at(start);
    if (!range) break;
    batch.clear();
    sizes_in_tokens.clear();
    for (std::int64_t s = range->begin; s < range->end; ++s) {
      batch.push_back(order.index_of(s));
      sizes_in_tokens.push_back(tokens[static_cast<std::size_t>(batch.back())]);
    }
    const std::vector<std::int64_t> sizes =
        cut_micro_batches(sizes_in_tokens, options.micro_batch_tokens, options.micro_batch_unit);
    heaviest.most_of_a_batch = std::max(heaviest.most_of_a_batch, static_cast<std::int64_t>(sizes.size()));
    auto first = batch.begin();
    for (const std::int64_t size : sizes) {
      std::array<std::int64_t, 3> weights{};
      for (auto at = first; at != first + size; ++at) {
        const auto i = static_cast<std::size_t>(*at);
        const std::int64_t longs = tokens[i] - globals[i];
        weights[0] += tokens[i];
        weights[1] += longs * globals[i];
        weights[2] += longs * longs;
      }
      for (std::size_t kind = 0; kind < most.size(); ++kind) {
        if (weights[kind] <= most[kind].weight) continue;
        most[kind].weight = weights[kind];
        most[kind].examples.assign(first, first + size);
      }
      first += size;
    }
    start = range->end;
  }
  for (Most& one : most) {
    auto& all = heaviest.examples;
    if (std::find(all.begin(), all.end(), one.examples) == all.end()) all.push_back(std::move(one.examples));
  }
  return heaviest;
}

}  // namespace etc::data
