#include "tasks/analyze/first_tokens.h"

#include <algorithm>

#include "etc_core/nn/attention_analysis.h"
#include "sparse/etc_attention.h"
#include "tasks/analyze/results.h"

namespace etc::analyze {

namespace {

constexpr std::int64_t kReach = kFirstTokens - 1, kDistances = 2 * kReach + 1;
constexpr std::int64_t kAtOnce = sparse::kMostQueryGroups;  // queries

// Adds the probabilities of queries begin … begin+kAtOnce-1. Each is a group of its own, so that the group's sum for a
// distance is the probability of one key.
void add_queries(const WatchedAttention& watched, std::int64_t begin, FirstTokens& first) {
  AnalysisSettings settings;
  settings.reach = kReach;
  settings.divergences = settings.label_mass = false;
  settings.groups_of = [&](const sparse::AttentionOperator*) {
    QueryGroups alone{kAtOnce, std::vector<std::uint8_t>(static_cast<std::size_t>(watched.inputs.q.rows))};
    for (std::int64_t g = 0; g < kAtOnce && begin + g < first.tokens; ++g) {
      alone.of_queries[static_cast<std::size_t>(begin + g)] = static_cast<std::uint8_t>(1u << g);
    }
    return alone;
  };
  AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) {
    for (std::int64_t query = begin; query < std::min(first.tokens, begin + kAtOnce); ++query) {
      double* const row = first.attention.data() + query * first.tokens;
      for (std::int64_t head = 0; head < of.heads; ++head) {
        const double* const sums = of.distance_mass.data() + (head * kAtOnce + query - begin) * kDistances + kReach;
        for (std::int64_t key = 0; key < first.tokens; ++key) {
          row[key] += sums[key - query] / static_cast<double>(of.heads);
        }
      }
    }
  });
  analysis(watched);
}

}  // namespace

std::int64_t first_tokens_bytes(std::int64_t heads) {
  return heads * kAtOnce * kDistances * std::int64_t{sizeof(double)};
}

FirstTokens first_tokens_of(Encoder& encoder, Tape& tape, const EncoderInput& input) {
  FirstTokens first;
  ForwardOptions options;
  options.attention_watch = [&](const WatchedAttention& watched) {
    const sparse::AttentionOperator* const op = watched.inputs.tiles->op;
    if (watched.layer != 0 || op == &sparse::kGlobalAttention) return;
    first.op = short_name(*op);
    first.tokens = std::min(watched.inputs.q.rows, kFirstTokens);
    first.attention.assign(static_cast<std::size_t>(first.tokens * first.tokens), 0.0);
    for (std::int64_t begin = 0; begin < first.tokens; begin += kAtOnce) add_queries(watched, begin, first);
  };
  encoder.forward(tape, input, options);
  return first;
}

}  // namespace etc::analyze
