#include "tasks/analyze/first_tokens.h"

#include <algorithm>

#include "etc_core/nn/attention_analysis.h"
#include "sparse/etc_attention.h"

namespace etc::analyze {

namespace {

constexpr std::int64_t kKeyBytes = 16'000'000;

// Number of keys kept per query.
std::int64_t keys_of_one(std::int64_t heads, std::int64_t queries) {
  const std::int64_t of_one = heads * queries * static_cast<std::int64_t>(sizeof(sparse::TopKey));
  return std::clamp(kKeyBytes / std::max<std::int64_t>(1, of_one), kFirstTokens, 10 * kFirstTokens);
}

FirstTokens means_of(const LayerStatistics& of, std::int64_t top) {
  FirstTokens first;
  const std::string name = of.op->name;
  first.op = name.substr(0, name.find('_'));
  first.tokens = std::min(of.queries, kFirstTokens);
  first.attention.resize(static_cast<std::size_t>(first.tokens * first.tokens));
  for (std::int64_t head = 0; head < of.heads; ++head) {
    for (std::int64_t query = 0; query < first.tokens; ++query) {
      const sparse::TopKey* const keys = of.top.data() + (head * of.queries + query) * top;
      for (std::int64_t n = 0; n < top; ++n) {
        if (keys[n].key < 0 || keys[n].set != 0 || keys[n].key >= first.tokens) continue;
        first.attention[static_cast<std::size_t>(query * first.tokens + keys[n].key)] +=
            static_cast<double>(keys[n].probability) / static_cast<double>(of.heads);
      }
    }
  }
  return first;
}

}  // namespace

std::int64_t first_tokens_bytes(std::int64_t heads, std::int64_t tokens) {
  return heads * tokens * keys_of_one(heads, tokens) * static_cast<std::int64_t>(sizeof(sparse::TopKey));
}

FirstTokens first_tokens_of(const FedEncoder& fed, const data::LoadedExample& example) {
  Tape tape(Recording::off);
  const std::vector<data::LoadedExample> alone{example};
  const EncoderInput input = fed.feed(tape, alone);
  AnalysisSettings settings;
  settings.top =
      keys_of_one(fed.model().num_attention_heads, std::max(input.long_offsets.back(), input.global_offsets.back()));
  settings.divergences = settings.label_mass = settings.distance_mass = false;
  FirstTokens first;
  AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) {
    if (of.op != &sparse::kGlobalAttention) first = means_of(of, settings.top);
  });
  ForwardOptions options;
  options.attention_watch = [&](const WatchedAttention& watched) {
    if (watched.layer == 0) analysis(watched);
  };
  fed.encoder().forward(tape, input, options);
  return first;
}

}  // namespace etc::analyze
