#include "data/loader/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "etc_core/base/random.h"

namespace etc::data {

namespace {

constexpr std::uint64_t kOrderStream = 0x6f72646572ull;  // "order": no other use of the run's seed shares these numbers

__extension__ typedef unsigned __int128 Wide;

// Uniform in [0, bound) up to a bias of bound / 2^64: draw number `draw` of the epoch's stream.
std::uint64_t below(std::uint64_t bound, std::uint64_t draw, std::uint64_t key) {
  const Philox4 words = philox({static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32), 0, 0}, key);
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<std::uint64_t>((Wide{bits} * bound) >> 64);
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

std::optional<SampleRange> batch_at(std::int64_t start, std::int64_t n, const LoaderOptions& options) {
  const std::int64_t run_end = options.epochs > 0 ? options.epochs * n : INT64_MAX;
  while (start < run_end) {
    const std::int64_t epoch_end = (start / n + 1) * n;
    const std::int64_t limit = options.carry_partial ? run_end : epoch_end;
    const std::int64_t end = limit - start > options.batch_examples ? start + options.batch_examples : limit;
    if (end - start == options.batch_examples || !options.drop_last) return SampleRange{start, end};
    start = limit;  // the rest of the epoch or of the run is dropped
  }
  return std::nullopt;
}

std::vector<std::int64_t> cut_micro_batches(std::span<const std::int64_t> tokens, std::int64_t limit) {
  std::vector<std::int64_t> sizes;
  std::int64_t held = 0;
  for (const std::int64_t count : tokens) {
    // Written as a difference: a limit near the largest integer must not overflow.
    if (sizes.empty() || (limit > 0 && count > limit - held)) {
      sizes.push_back(0);
      held = 0;
    }
    ++sizes.back();
    held += count;
  }
  return sizes;
}

}  // namespace etc::data
